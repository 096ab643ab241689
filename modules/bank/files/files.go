// Package files keeps evidence: files that belong to a document of a customer, to a message or to a task.
//
// A file is a PDF, a JPEG or a PNG, recognised by its content. Its content is stored in chunks, encrypted with a key of its own, which
// is sealed by the master key. Each chunk is written in a small transaction, so that other writes do not wait for an upload. The last
// transaction makes the file visible; what an interrupted upload has left is purged. A deletion destroys the key at once and the chunks
// soon after.
//
// The right on a file is the right on its record: the module of the record decides, see package attachment. With a virus scanner, a
// file cannot be opened until it was scanned, and only its uploader sees that it exists. The content is only served as a
// download. Previews are pictures that a worker process renders; they are not stored.
//
// The module owns the tables files and file_chunks. It publishes the view attached_files (id, record_type, record_id, parent_id): the
// files of records that are or will be readable.
package files

import (
	"context"
	"log/slog"
	"net/http"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"kontor/modules/kit/attachment"
	"kontor/modules/kit/upload"
	"kontor/server/access"
	"kontor/server/apierr"
	"kontor/server/endpoint"
	"kontor/server/ratelimit"
	"kontor/server/shares"
	"kontor/store"
)

// StoredFile is a file as the API shows it.
type StoredFile struct {
	ID         string          `json:"id"`
	RecordType attachment.Kind `json:"record_type"`
	RecordID   string          `json:"record_id" doc:"The document, message or task."`
	ParentID   string          `json:"parent_id" doc:"The customer of a document or task, the chat of a message."`
	Name       string          `json:"name" maxLength:"120" example:"passport.pdf" doc:"Without characters that a file system or a reader could misunderstand."`
	MediaType  string          `json:"media_type" enum:"application/pdf,image/jpeg,image/png"`
	Size       int64           `json:"size" minimum:"1" example:"245760" doc:"In bytes."`
	SHA256     string          `json:"sha256" pattern:"^[0-9a-f]{64}$" example:"9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08" doc:"Of the content, in hexadecimal."`
	Status     Status          `json:"status" doc:"checking: no virus scanner has seen it yet, and it cannot be opened. infected: the scanner has found malware, and the content was destroyed."`
	UploadedBy string          `json:"uploaded_by"`
	CreatedAt  store.Time      `json:"created_at"`

	account string
	charged int64
	chunks  int64
	sealed  string // the key of the content
}

// Status is the state of a file.
type Status string

// The states that the API shows, and those of files that do not exist for it.
const (
	Checking Status = "checking"
	Ready    Status = "ready"
	Infected Status = "infected"

	uploading Status = "uploading"
	discarded Status = "discarded" // an upload that has failed
	deleted   Status = "deleted"
)

// Values returns the states that the API shows.
func (Status) Values() []string { return []string{string(Checking), string(Ready), string(Infected)} }

// ETag changes with the state of the file. Its content never changes.
func (f StoredFile) ETag() string { return f.ID + "-" + string(f.Status) }

// EachUser names the uploader.
func (f StoredFile) EachUser(add func(id string)) { add(f.UploadedBy) }

func (f StoredFile) target() attachment.Target {
	return attachment.Target{Kind: f.RecordType, Parent: f.ParentID, Record: f.RecordID}
}

// Preview is a rendered page of a file.
type Preview struct {
	JPEG  []byte
	Pages int // of the file
}

// Renderer renders previews. It loads the file when a worker is free.
type Renderer interface {
	// Render returns a page, counted from 1, at most width pixels wide. It returns apierr.PreviewImpossible, apierr.PageNotFound and
	// apierr.Unavailable.
	Render(ctx context.Context, caller string, load func() ([]byte, error), page, width int) (Preview, error)
}

// Options are the limits of files.
type Options struct {
	MaxBytes int64  // of a file
	Quota    int64  // bytes of a customer, or of a user in chats and tasks
	Clamd    string // address of the virus scanner, host:port or the path of a socket; empty: none
	Renderer Renderer
	Texts    endpoint.Texts
	Log      *slog.Logger
}

// Service is the module. Create one with [New].
type Service struct {
	Options
	db      *store.DB
	holders map[attachment.Kind]attachment.Holder
	chunks  *upload.Chunks

	uploads, downloads *shares.Pool
}

// New returns the module on a database. holders decide about the files of their records.
func New(db *store.DB, holders map[attachment.Kind]attachment.Holder, o Options) *Service {
	return &Service{Options: o, db: db, holders: holders, chunks: upload.NewChunks(db, upload.Table{From: keyTable, Label: label}),
		uploads: shares.New(maxUploads, maxUploads/4), downloads: shares.New(maxDownloads, maxDownloads/4)}
}

// allow asks the module of the record.
func (s *Service) allow(ctx context.Context, q store.Querier, target attachment.Target, wanted access.Permission, file *attachment.File) error {
	return s.holders[target.Kind].AllowFile(ctx, q, target, wanted, file)
}

// changed tells the module of the record that the files that others can see have changed.
func (s *Service) changed(ctx context.Context, tx *store.Tx, f StoredFile, added bool) error {
	if watcher, ok := s.holders[f.RecordType].(attachment.Watcher); ok && f.Status == Ready {
		return watcher.FilesChanged(ctx, tx, f.target(), added)
	}
	return nil
}

// cipher returns the cipher of a file. It returns apierr.FileNotFound for a file whose key was destroyed.
func (s *Service) cipher(f StoredFile) (*upload.Cipher, error) {
	if f.sealed == "" {
		return nil, apierr.FileNotFound
	}
	return s.chunks.Open(f.ID, f.sealed)
}

// fileForm is the form of an upload, for the API document.
type fileForm struct {
	File []byte `json:"file" required:"true" doc:"A PDF, JPEG or PNG, recognised by its content. Its file name is kept, without characters that could mislead."`
}

// uploadTo returns the handler that adds a file to a record. parent and record are the names of the first two ids in the path.
func (s *Service) uploadTo(kind attachment.Kind, parent, record string) endpoint.Handler {
	return endpoint.Streamed(http.StatusCreated, media, func(ctx context.Context, r *endpoint.Request) (StoredFile, error) {
		target := attachment.Target{Kind: kind}
		var err error
		if target.Parent, err = idOf(r, 0, parent); err != nil {
			return StoredFile{}, err
		}
		if target.Record, err = idOf(r, 1, record); err != nil {
			return StoredFile{}, err
		}
		return s.upload(ctx, r, target)
	})
}

const uploadNotes = "Send a form, or the file itself with its name in the header `Content-Disposition`. The body is stored while it arrives and must not " +
	"pause for more than 15 seconds. `Content-Digest` and `Repr-Digest` with sha-256 are compared with the file. An `Idempotency-Key` covers the length, " +
	"name and digest of the file that the headers state."

// Endpoints returns the rows of the module.
func (s *Service) Endpoints() []endpoint.Endpoint {
	uploads := []apierr.Kind{apierr.FileRecordNotFound, apierr.FileType, apierr.FileInvalid, apierr.TooManyFiles, apierr.QuotaExceeded, apierr.PayloadTooLarge,
		apierr.RequestTimeout, apierr.TooManyAtOnce, apierr.RecordErased}
	binary := []endpoint.Answer{
		{Status: http.StatusOK, Media: mediaPDF, Says: "The file."}, {Status: http.StatusOK, Media: mediaJPEG, Says: "The file."},
		{Status: http.StatusOK, Media: mediaPNG, Says: "The file."},
		{Status: http.StatusPartialContent, Media: mediaPDF, Says: "The range."}, {Status: http.StatusPartialContent, Media: mediaJPEG, Says: "The range."},
		{Status: http.StatusPartialContent, Media: mediaPNG, Says: "The range."},
		{Status: http.StatusNotModified},
	}
	rows := []endpoint.Endpoint{
		{Name: "files.add_to_document", Method: http.MethodPost, Path: "/v1/customers/{id}/kyc/documents/{document_id}/files",
			Access: access.On(access.Customers, access.Update), Summary: "Upload a file as evidence of a document.",
			Faults: append([]apierr.Kind{apierr.CustomerNotFound}, uploads...), Handle: s.uploadTo(attachment.Document, "id", "document_id")},
		{Name: "files.add_to_message", Method: http.MethodPost, Path: "/v1/chats/{id}/messages/{message_id}/files",
			Access: access.On(access.Chats, access.Update), Summary: "Upload a file to an own message.",
			Faults: append([]apierr.Kind{apierr.ChatNotFound}, uploads...), Handle: s.uploadTo(attachment.Message, "id", "message_id")},
		{Name: "files.add_to_task", Method: http.MethodPost, Path: "/v1/customers/{customer_id}/tasks/{id}/files",
			Access: access.On(access.Tasks, access.Read), Summary: "Upload a file to a task.",
			Faults: append([]apierr.Kind{apierr.TaskNotFound, apierr.TaskInvalidTransition}, uploads...), Handle: s.uploadTo(attachment.Task, "customer_id", "id")},
		{Name: "files.of_customer", Method: http.MethodGet, Path: "/v1/customers/{id}/kyc/files",
			Access: access.On(access.Customers, access.Read), Summary: "List the evidence of a customer, the newest first.",
			Faults: []apierr.Kind{apierr.CustomerNotFound}, Handle: endpoint.JSON(http.StatusOK, s.ofCustomer)},
		{Name: "files.of_chat", Method: http.MethodGet, Path: "/v1/chats/{id}/files",
			Access: access.On(access.Chats, access.Read), Summary: "List the files of a chat, the newest first.",
			Faults: []apierr.Kind{apierr.ChatNotFound}, Handle: endpoint.JSON(http.StatusOK, s.ofChat)},
		{Name: "files.of_task", Method: http.MethodGet, Path: "/v1/customers/{customer_id}/tasks/{id}/files",
			Access: access.On(access.Tasks, access.Read), Summary: "List the files of a task, the newest first.",
			Faults: []apierr.Kind{apierr.TaskNotFound}, Handle: endpoint.JSON(http.StatusOK, s.ofTask)},
		{Name: "files.get", Method: http.MethodGet, Path: "/v1/files/{id}",
			Access: access.SignedIn, Summary: "Get a file without its content.",
			Faults: []apierr.Kind{apierr.FileNotFound, apierr.NoAccess}, Handle: endpoint.JSON(http.StatusOK, s.get)},
		{Name: "files.content", Method: http.MethodGet, Path: "/v1/files/{id}/content",
			Access: access.SignedIn, Summary: "Download a file as it was uploaded.",
			Faults: []apierr.Kind{apierr.FileNotFound, apierr.NoAccess, apierr.FileBeingChecked, apierr.FileInfected, apierr.TooManyAtOnce,
				apierr.RangeBeyondEnd},
			Doc: endpoint.Doc{Answers: binary, Headers: []string{"If-None-Match", "Range", "If-Range"},
				Sends:       []string{"Accept-Ranges", "Content-Disposition", "Content-Range", "Repr-Digest"},
				Description: "Always a download. `Range` takes one range of bytes; several ranges are answered with the whole file. `Repr-Digest` has the digest of the file."},
			Handle: endpoint.Raw(nil, s.content)},
		{Name: "files.preview", Method: http.MethodGet, Path: "/v1/files/{id}/preview", OwnTime: true,
			Access: access.SignedIn, Summary: "Get a picture of a page.",
			Faults: []apierr.Kind{apierr.InvalidInput, apierr.FileNotFound, apierr.NoAccess, apierr.FileBeingChecked, apierr.FileInfected, apierr.PreviewImpossible,
				apierr.PageNotFound, apierr.Unavailable},
			Doc: endpoint.Doc{Headers: []string{"If-None-Match"}, Sends: []string{"Content-Disposition", "X-Page-Count"}, Answers: []endpoint.Answer{
				{Status: http.StatusOK, Media: mediaJPEG, Says: "The page, without metadata."}, {Status: http.StatusNotModified}},
			},
			Handle: endpoint.RawInput(s.preview)},
		{Name: "files.delete", Method: http.MethodDelete, Path: "/v1/files/{id}",
			Access: access.SignedIn, Summary: "Delete a file.",
			Faults: []apierr.Kind{apierr.FileNotFound, apierr.NoAccess, apierr.FileLocked, apierr.RecordErased, apierr.TaskInvalidTransition},
			Handle: endpoint.JSON(http.StatusOK, s.remove)},
	}
	for i := range rows {
		rows[i].Tag, rows[i].Limit, rows[i].Roles = "Files", ratelimit.Private, []string{access.Advisor, access.Customer}
		if rows[i].Handle.Streams {
			rows[i].MaxBody, rows[i].OwnTime = int(s.MaxBytes)+upload.FormOverhead, true
			rows[i].Doc.Body, rows[i].Doc.Description = fileForm{}, uploadNotes
		}
	}
	return rows
}

const (
	maxNameRunes = 120
	maxNameBytes = 200 // file systems allow 255 for a name
)

// extensions are the file extensions of each media type; the first one is added to names without one of them.
var extensions = map[string][]string{
	mediaPDF:  {".pdf"},
	mediaJPEG: {".jpg", ".jpeg", ".jpe", ".jfif"},
	mediaPNG:  {".png"},
}

// reserved are names that Windows opens as devices, with any extension.
var reserved = map[string]bool{"con": true, "prn": true, "aux": true, "nul": true}

// cleanName returns a name under which any system can store the file: the last part of a path, with an extension of the type that the
// content has. Characters that are invisible, change the direction of the text or have a meaning in a path are removed.
func cleanName(name, mediaType string) string {
	name = strings.ToValidUTF8(name, "")
	if at := strings.LastIndexAny(name, `/\`); at >= 0 {
		name = name[at+1:]
	}
	name = norm.NFC.String(strings.Map(printable, name))
	name = strings.Trim(strings.Join(strings.Fields(name), " "), ". ")
	base, extension := splitExtension(name, mediaType)
	base = strings.TrimRight(shorten(base, maxNameRunes-len(extension), maxNameBytes-len(extension)), ". ")
	if first, _, _ := strings.Cut(strings.ToLower(base), "."); base == "" || reserved[strings.TrimSpace(first)] || isPort(first) {
		base = strings.TrimSuffix("file-"+base, "-")
	}
	return base + extension
}

// printable replaces a character that must not be in a name, or drops it.
func printable(r rune) rune {
	switch {
	case strings.ContainsRune(`<>:"|?*`, r):
		return '_'
	case unicode.IsSpace(r):
		return ' '
	case unicode.IsControl(r), unicode.Is(unicode.Cf, r), unicode.Is(unicode.Co, r), r == utf8.RuneError, r >= 0xfff0 && r <= 0xffff,
		unicode.Is(unicode.Variation_Selector, r), r == '\u115f', r == '\u1160', r == '\u3164', r == '\uffa0':
		return -1 // also marks of direction, soft hyphens and joiners, which are of the category Cf
	}
	return r
}

// splitExtension separates an extension of the type, or adds the usual one.
func splitExtension(name, mediaType string) (base, extension string) {
	known := extensions[mediaType]
	lower := strings.ToLower(name)
	for _, e := range known {
		if strings.HasSuffix(lower, e) && len(lower) == len(name) {
			return name[:len(name)-len(e)], e
		}
	}
	return name, known[0]
}

// shorten cuts a text to a number of characters and bytes.
func shorten(text string, runes, bytes int) string {
	count := 0
	for at, r := range text {
		if count++; count > runes || at+utf8.RuneLen(r) > bytes {
			return text[:at]
		}
	}
	return text
}

// isPort reports whether Windows opens a name as a port: com1, lpt9.
func isPort(name string) bool {
	return len(name) == 4 && (strings.HasPrefix(name, "com") || strings.HasPrefix(name, "lpt")) && name[3] >= '0' && name[3] <= '9'
}

// disposition returns a header Content-Disposition that makes clients store the file (RFC 6266). Old clients read the name in ASCII.
func disposition(name string) string {
	var plain, encoded strings.Builder
	for _, r := range name {
		if r < ' ' || r > '~' || r == '"' || r == '\\' || r == '%' {
			plain.WriteByte('_')
		} else {
			plain.WriteRune(r)
		}
	}
	const hex = "0123456789ABCDEF"
	for i := range len(name) {
		if c := name[i]; c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-' || c == '.' || c == '_' {
			encoded.WriteByte(c)
		} else {
			encoded.Write([]byte{'%', hex[c>>4], hex[c&15]})
		}
	}
	return `attachment; filename="` + plain.String() + `"; filename*=UTF-8''` + encoded.String()
}
