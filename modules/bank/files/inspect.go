package files

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"net/http"
	"strconv"

	"github.com/gofiber/fiber/v2"

	"kontor/modules/kit/records"
	"kontor/modules/kit/upload"
	"kontor/server/access"
	"kontor/server/apierr"
	"kontor/server/endpoint"
	"kontor/server/etag"
	"kontor/store"
	"kontor/store/audittrail"
)

// The media types that files may have. They are recognised by the content alone.
const (
	mediaPDF  = "application/pdf"
	mediaJPEG = "image/jpeg"
	mediaPNG  = "image/png"
)

const (
	jpegStart = "\xff\xd8\xff"
	pngStart  = "\x89PNG\r\n\x1a\n"
	pdfStart  = "%PDF-"
)

const (
	pdfWindow  = 4096 // readers of PDF accept a header in the first kilobyte, some even later
	htmlWindow = 1445 // browsers look at so many bytes to guess a type
	tailBytes  = 66 << 10
	endWindow  = 1024 // the end of a PDF is in its last kilobyte

	// maxPixels is the size of the largest picture: common telephones take up to 50 million pixels.
	maxPixels = 60_000_000
)

// mediaOf returns the type of a file by its first bytes, or an empty text for other types.
func mediaOf(head []byte) string {
	switch {
	case bytes.HasPrefix(head, []byte(jpegStart)):
		return mediaJPEG
	case bytes.HasPrefix(head, []byte(pngStart)):
		return mediaPNG
	case bytes.HasPrefix(head, []byte(pdfStart+"1.")), bytes.HasPrefix(head, []byte(pdfStart+"2.")):
		return mediaPDF
	}
	return ""
}

// structure follows the structure of a picture while its bytes arrive.
type structure interface {
	write(p []byte)
	// verdict is called at the end with the last bytes of the file. It returns the key of a reason to reject the file, or "".
	verdict(tail []byte) string
	pixels() int64
}

// inspector checks a file while it arrives. It decodes nothing: pictures and documents are decoded in worker processes, for previews.
type inspector struct {
	media string
	size  int64
	hash  hash.Hash
	tail  []byte
	parts structure // nil for documents
}

// newInspector looks at the beginning of a file. It returns apierr.FileType for types that are not accepted, and apierr.FileInvalid for
// a file that another program could take for another type.
func newInspector(head []byte) (*inspector, error) {
	i := &inspector{media: mediaOf(head), hash: sha256.New()}
	switch i.media {
	case "":
		return nil, apierr.FileType
	case mediaPNG:
		i.parts = &pngParts{}
	case mediaJPEG:
		i.parts = &jpegParts{}
	}
	if i.media != mediaPDF && bytes.Contains(head[:min(len(head), pdfWindow)], []byte(pdfStart)) || looksLikeHTML(head) {
		return nil, invalid("files.foreign_data")
	}
	return i, nil
}

// looksLikeHTML reports whether a browser that guesses types could take the file for a page.
func looksLikeHTML(head []byte) bool {
	head = bytes.ToLower(head[:min(len(head), htmlWindow)])
	for _, tag := range []string{"<!doctype", "<html", "<script", "<iframe", "<svg", "<body"} {
		if bytes.Contains(head, []byte(tag)) {
			return true
		}
	}
	return false
}

// invalid returns the error for a file that is rejected, with the key of the reason.
func invalid(reason string, args ...apierr.Args) error {
	var problems apierr.Fields
	problems.Add(upload.FileMember, reason, args...)
	return &apierr.Error{Kind: apierr.FileInvalid, Fields: &problems}
}

// write takes the next bytes of the file. It returns apierr.FileInvalid as soon as a picture turns out to have too many pixels.
func (i *inspector) write(p []byte) error {
	i.size += int64(len(p))
	i.hash.Write(p)
	if keep := tailBytes - len(p); keep > 0 {
		i.tail = append(i.tail[max(0, len(i.tail)-keep):], p...)
	} else {
		i.tail = append(i.tail[:0], p[len(p)-tailBytes:]...)
	}
	if i.parts == nil {
		return nil
	}
	i.parts.write(p)
	if i.parts.pixels() > maxPixels {
		return invalid("files.too_many_pixels", apierr.Args{"Max": maxPixels})
	}
	return nil
}

// verdict returns apierr.FileInvalid for a file that is cut off, or that contains more than its type allows.
func (i *inspector) verdict() error {
	var reason string
	switch {
	case endsAsArchive(i.tail):
		reason = "files.foreign_data"
	case i.parts != nil:
		reason = i.parts.verdict(i.tail)
	case !bytes.Contains(i.tail[max(0, len(i.tail)-endWindow):], []byte("%%EOF")):
		reason = "files.damaged"
	}
	if reason != "" {
		return invalid(reason)
	}
	return nil
}

// endsAsArchive reports whether the file is also a ZIP archive: its directory is found from the end of the file, and a comment of up
// to 64 KiB may follow it. Programs in Java, and office documents, are such archives.
func endsAsArchive(tail []byte) bool {
	const record, commentAt = 22, 20
	for end := len(tail); ; {
		at := bytes.LastIndex(tail[:end], []byte("PK\x05\x06"))
		if at < 0 {
			return false
		}
		if at+record <= len(tail) && at+record+int(binary.LittleEndian.Uint16(tail[at+commentAt:])) <= len(tail) {
			return true
		}
		end = at
	}
}

const (
	selectStored = `SELECT ` + columns + ` FROM files WHERE status IN ('checking', 'ready') AND id > $1 ORDER BY id LIMIT $2`

	selectLengths = `SELECT COUNT(*), CAST(COALESCE(SUM(LENGTH(content)), 0) AS BIGINT), COALESCE(MAX(number), -1) FROM file_chunks WHERE file_id = $1`

	// Chunks of files without a key, which no purge will find.
	selectForgotten = `
		SELECT f.id FROM files f
		WHERE f.key_sealed = '' AND f.chunks = 0 AND EXISTS (SELECT 1 FROM file_chunks c WHERE c.file_id = f.id)
		LIMIT 1`
)

const checkBatch = 200

// Check compares the content of all files with their records, and returns the number of files: the key of each file opens, and no chunk
// is missing or has another length. With content it also decrypts every chunk and compares the digest, which reads the whole content. The
// error is *records.Breaks with every file that differs.
func Check(ctx context.Context, e *audittrail.Evidence, content bool) (checked int64, err error) {
	if e.Schema < migration {
		return 0, nil
	}
	var breaks records.Breaks
	for last := ""; ; {
		found, err := store.All(ctx, e, scanFile, selectStored, last, checkBatch)
		if err != nil {
			return checked, fmt.Errorf("read files: %w", err)
		}
		for _, f := range found {
			if err := breaks.Add(checkFile(ctx, e, f, content)); err != nil {
				return checked, err
			}
			checked++
			last = f.ID
		}
		if len(found) < checkBatch {
			if err := breaks.Add(checkForgotten(ctx, e)); err != nil {
				return checked, err
			}
			return checked, breaks.Err()
		}
	}
}

func checkForgotten(ctx context.Context, e *audittrail.Evidence) error {
	var id string
	err := e.QueryRow(ctx, selectForgotten).Scan(&id)
	if errors.Is(err, store.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	return &records.Break{Type: keyTable, ID: id, Reason: "chunks remain of a file that was purged"}
}

func checkFile(ctx context.Context, e *audittrail.Evidence, f StoredFile, content bool) error {
	broken := func(reason string) error {
		return &records.Break{Type: auditTypes[f.RecordType], ID: f.ID, Reason: reason}
	}
	var count, bytes, largest int64
	if err := e.QueryRow(ctx, selectLengths, f.ID).Scan(&count, &bytes, &largest); err != nil {
		return fmt.Errorf("read the chunks of file %s: %w", f.ID, err)
	}
	want := chunksOf(f.Size)
	if count != want || largest != want-1 || bytes != f.Size+want*upload.TagBytes {
		return broken(fmt.Sprintf("it has %d chunks of %d bytes, and should have %d of %d", count, bytes, want, f.Size+want*upload.TagBytes))
	}
	key, err := e.Unseal(keyTable, upload.KeyColumn, f.ID, f.sealed)
	if err != nil {
		return broken("its key cannot be opened")
	}
	if !content {
		return nil
	}
	cipher, err := upload.NewCipher(label, f.ID, key)
	if err != nil {
		return broken("its key is damaged")
	}
	sum := sha256.New()
	for number := range want {
		var sealed []byte
		if err := e.QueryRow(ctx, selectChunk, f.ID, number).Scan(&sealed); err != nil {
			return fmt.Errorf("read chunk %d of file %s: %w", number, f.ID, err)
		}
		plain, err := cipher.Open(sealed, number, place(number, number == want-1)...)
		if err != nil {
			return broken(fmt.Sprintf("chunk %d was changed or belongs to another file", number))
		}
		sum.Write(plain)
	}
	if hex.EncodeToString(sum.Sum(nil)) != f.SHA256 {
		return broken("its content differs from its digest")
	}
	return nil
}

const (
	defaultWidth = 800
	minWidth     = 16
	maxWidth     = 2000 // pixels
	maxPage      = 10_000
)

type previewInput struct {
	ID    string `path:"id"`
	Page  *int   `query:"page" minimum:"1" maximum:"10000" default:"1" doc:"The page, counted from 1."`
	Width *int   `query:"width" minimum:"16" maximum:"2000" default:"800" example:"800" doc:"The width of the picture, in pixels."`
}

// Validate checks the ranges.
func (in *previewInput) Validate(v *apierr.Fields) {
	checkRange(v, "page", in.Page, 1, maxPage)
	checkRange(v, "width", in.Width, minWidth, maxWidth)
}

// preview serves a picture of a page, which a worker process renders: without metadata, upright, on white. It is not stored anywhere.
func (s *Service) preview(ctx context.Context, r *endpoint.Request, in previewInput) error {
	page, width := *cmp.Or(in.Page, new(1)), *cmp.Or(in.Width, new(defaultWidth))
	f, err := s.openFile(ctx, r)
	if err != nil {
		return err
	}
	header := &r.Fiber.Response().Header
	protect(header)
	tag := fmt.Sprintf("%s-%d-%d", f.SHA256[:32], page, width)
	header.Set(fiber.HeaderETag, `"`+tag+`"`)
	if _, known := etag.NoneMatch(string(r.Fiber.Request().Header.Peek(fiber.HeaderIfNoneMatch)), tag); known {
		r.Fiber.Response().SetStatusCode(http.StatusNotModified)
		return nil
	}
	load := func() ([]byte, error) { return s.load(ctx, f) }
	preview, err := s.Renderer.Render(ctx, access.From(ctx).UserID, load, page, width)
	if err != nil {
		header.Del(fiber.HeaderETag)
		return err
	}
	endpoint.Report(ctx, endpoint.Event{Kind: endpoint.Reading, Action: "files.preview", RecType: auditTypes[f.RecordType], RecID: f.ID})
	header.Set("X-Page-Count", strconv.Itoa(preview.Pages))
	header.Set(fiber.HeaderContentDisposition, `inline; filename="preview.jpg"`)
	header.SetContentType(mediaJPEG)
	r.Fiber.Response().SetBody(preview.JPEG)
	return nil
}

// checkRange checks a number that may be missing.
func checkRange(v *apierr.Fields, name string, n *int, low, high int) {
	if n != nil && (*n < low || *n > high) {
		v.Add(name, "invalid.range", apierr.Args{"Min": low, "Max": high})
	}
}

// load reads and decrypts a whole file, for a worker.
func (s *Service) load(ctx context.Context, f StoredFile) ([]byte, error) {
	cipher, err := s.cipher(f)
	if err != nil {
		return nil, err
	}
	content := make([]byte, 0, f.Size)
	for number := range chunksOf(f.Size) {
		plain, err := s.readChunk(ctx, s.db, cipher, number, chunksOf(f.Size))
		if err != nil {
			return nil, err
		}
		content = append(content, plain...)
	}
	return content, nil
}
