package files

import (
	"bufio"
	"bytes"
	"context"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/gofiber/fiber/v2"

	"kontor/modules/kit/attachment"
	"kontor/modules/kit/upload"
	"kontor/server/access"
	"kontor/server/apierr"
	"kontor/server/endpoint"
	"kontor/store"
)

const (
	// maxPerRecord bounds the files of one document, message or task.
	maxPerRecord = 50
	// leastCharge is what a small file counts against a quota: it bounds the number of files.
	leastCharge = 64 << 10
)

// upload stores the file in a request. It returns what the record's module says, apierr.FileType, apierr.FileInvalid,
// apierr.TooManyFiles, apierr.QuotaExceeded, apierr.TooManyAtOnce, and the errors of the body.
func (s *Service) upload(ctx context.Context, r *endpoint.Request, target attachment.Target) (StoredFile, error) {
	if err := s.allow(ctx, s.db, target, access.Create, nil); err != nil {
		return StoredFile{}, err
	}
	caller := access.From(ctx)
	release, ok := s.uploads.Take(caller.UserID, caller.Staff())
	if !ok {
		return StoredFile{}, apierr.TooManyAtOnce.RetryAfter(time.Second)
	}
	defer release()
	in, err := open(r, s.MaxBytes)
	if err != nil {
		return StoredFile{}, err
	}
	return s.store(ctx, target, in)
}

// transfer is an upload while it runs.
type transfer struct {
	*Service
	file    StoredFile
	cipher  *upload.Cipher
	inspect *inspector
	content *bufio.Reader
}

// store reads a file and stores it. It begins when the first bytes show a type that is accepted.
func (s *Service) store(ctx context.Context, target attachment.Target, in incoming) (StoredFile, error) {
	t := &transfer{Service: s, content: bufio.NewReaderSize(in.content, pdfWindow)}
	head, err := t.content.Peek(pdfWindow)
	if err != nil && !errors.Is(err, io.EOF) {
		return StoredFile{}, err
	}
	if len(head) == 0 {
		return StoredFile{}, apierr.Invalid(upload.FileMember, "invalid.required")
	}
	if t.inspect, err = newInspector(head); err != nil {
		return StoredFile{}, err
	}
	if err := t.begin(ctx, target, in.declared); err != nil {
		return StoredFile{}, err
	}
	err = t.receive(ctx, s.MaxBytes)
	if err == nil {
		err = t.inspect.verdict()
	}
	if err == nil {
		err = in.complete(t.inspect.hash.Sum(nil))
	}
	if err == nil {
		t.file.Name = cleanName(in.stated, t.inspect.media)
		err = t.complete(ctx)
	}
	if err != nil {
		t.discard()
		return StoredFile{}, err
	}
	return t.file, nil
}

// begin records the upload and reserves its part of the quota.
func (t *transfer) begin(ctx context.Context, target attachment.Target, declared int64) (err error) {
	if declared < 0 || declared > t.MaxBytes {
		declared = t.MaxBytes
	}
	caller := access.From(ctx).UserID
	t.file = StoredFile{ID: store.NewID(), RecordType: target.Kind, RecordID: target.Record, ParentID: target.Parent, MediaType: t.inspect.media,
		UploadedBy: caller, account: caller, charged: max(declared, leastCharge), chunks: chunksOf(t.MaxBytes) + 1}
	if target.Kind == attachment.Document {
		t.file.account = target.Parent
	}
	t.cipher, err = t.chunks.Begin(ctx, t.file.ID, func(ctx context.Context, tx *store.Tx, sealed string) error {
		if err := t.checkQuota(ctx, tx); err != nil {
			return err
		}
		f := t.file
		_, err := tx.Exec(ctx, insertStatement, f.ID, string(f.RecordType), f.RecordID, f.ParentID, f.account, f.MediaType, f.chunks, f.charged,
			sealed, f.UploadedBy, tx.Now())
		return err
	})
	return err
}

// checkQuota returns apierr.TooManyFiles or apierr.QuotaExceeded if there is no place for the file. Transactions run one after another, and
// uploads that still run count, so that parallel uploads cannot exceed the quota together.
func (t *transfer) checkQuota(ctx context.Context, tx *store.Tx) error {
	var count, used int64
	if err := tx.QueryRow(ctx, selectCount, t.file.RecordID).Scan(&count); err != nil {
		return err
	}
	if count >= maxPerRecord {
		return apierr.TooManyFiles.With(apierr.Args{"Max": maxPerRecord})
	}
	if err := tx.QueryRow(ctx, selectUsed, t.file.account).Scan(&used); err != nil {
		return err
	}
	if used+t.file.charged > t.Quota {
		const limit = "files.quota_megabytes"
		return apierr.QuotaExceeded.With(apierr.Args{"Limit": limit, "Max": fmt.Sprintf("%d MB", t.Quota>>20)}).Detail("limit", limit).Detail("max", t.Quota).Detail("used", used)
	}
	return nil
}

// receive stores the content, chunk by chunk. It holds one chunk in memory.
func (t *transfer) receive(ctx context.Context, limit int64) error {
	buffer := make([]byte, chunkBytes, chunkBytes+upload.TagBytes)
	for number := int64(0); ; number++ {
		n, err := io.ReadFull(t.content, buffer[:chunkBytes])
		if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
			return err
		}
		_, err = t.content.Peek(1)
		last := errors.Is(err, io.EOF)
		if err != nil && !last {
			return err
		}
		if t.inspect.size+int64(n) > limit {
			return apierr.PayloadTooLarge.With(apierr.Args{"Max": limit})
		}
		if err := t.inspect.write(buffer[:n]); err != nil {
			return err
		}
		if err := t.writeChunk(ctx, t.cipher.Seal(buffer[:n], number, place(number, last)...), number); err != nil || last {
			return err
		}
	}
}

// writeChunk stores a sealed chunk in a transaction of its own.
func (t *transfer) writeChunk(ctx context.Context, sealed []byte, number int64) error {
	return t.chunks.Write(ctx, func(ctx context.Context, tx *store.Tx) error {
		stored, err := tx.Exec(ctx, insertChunk, t.file.ID, number, sealed)
		if err == nil && stored == 0 {
			err = apierr.FileRecordNotFound // it was deleted meanwhile, with its files
		}
		return err
	})
}

// complete makes the file visible, if the record still accepts it.
func (t *transfer) complete(ctx context.Context) error {
	f := t.file
	f.Size, f.SHA256, f.Status = t.inspect.size, hex.EncodeToString(t.inspect.hash.Sum(nil)), Ready
	f.chunks, f.charged, f.CreatedAt = chunksOf(f.Size), max(f.Size, leastCharge), t.db.Now()
	action := "files.upload"
	if t.Clamd != "" {
		f.Status, action = Checking, "files.receive"
	}
	answer := t.db.Answer(ctx, f)
	after := t.db.Digest(f.record().As(answer))
	err := t.chunks.InTx(ctx, func(ctx context.Context, tx *store.Tx) error {
		if err := t.allow(ctx, tx, f.target(), access.Create, nil); err != nil {
			return err
		}
		changed, err := tx.Exec(ctx, completeStatement, f.ID, f.Name, f.Size, f.chunks, f.SHA256, f.charged, string(f.Status), f.CreatedAt)
		if err != nil {
			return err
		}
		if changed == 0 {
			return apierr.FileRecordNotFound
		}
		f.audit(ctx, tx, action, nil, after)
		tx.Respond(answer)
		return t.changed(ctx, tx, f, true)
	})
	t.file = f
	return err
}

// discard marks what an upload has stored for the purge. Without it, for example after a kill, the purge finds the upload by its age. It
// does not depend on the request, which may have ended.
func (t *transfer) discard() {
	limited, cancel := context.WithTimeout(context.Background(), upload.WriteTime)
	defer cancel()
	err := t.db.InTx(limited, func(tx *store.Tx) error {
		_, err := tx.Exec(limited, discardStatement, t.file.ID)
		return err
	})
	if err == nil {
		err = t.purge(limited, t.file.ID, t.file.chunks)
	}
	if err != nil {
		t.Log.Warn("the rest of an upload remains until it is purged", "file", t.file.ID, "cause", err)
	}
}

const anyMedia = "application/octet-stream"

// media are the types that an upload may state. A form comes first; the others are the file itself. The type that a client
// states for the file has no effect.
var media = []string{upload.FormMedia, mediaPDF, mediaJPEG, mediaPNG, anyMedia}

// incoming is a file in a request.
type incoming struct {
	content  io.Reader
	declared int64        // an upper bound of its size; negative: unknown
	form     *upload.Form // nil for a file without a form
	stated   string       // the name that the client states
	digests  []string     // Content-Digest and Repr-Digest of the request
}

// open finds the file in a request. It reads a form up to its file.
func open(r *endpoint.Request, limit int64) (incoming, error) {
	header := &r.Fiber.Request().Header
	in := incoming{content: r.Body, declared: int64(header.ContentLength())}
	var err error
	if in.form, err = upload.FormOf(r); err != nil {
		return in, err
	}
	if in.form != nil {
		part, err := in.form.File()
		if err == nil {
			in.content, in.stated = part, part.FileName()
		}
		return in, err
	}
	in.stated = upload.FileNameIn(string(header.Peek(fiber.HeaderContentDisposition)))
	for _, name := range []string{"Content-Digest", "Repr-Digest"} {
		in.digests = append(in.digests, string(bytes.Join(header.PeekAll(name), []byte(","))))
	}
	if in.declared > limit {
		return in, apierr.PayloadTooLarge.With(apierr.Args{"Max": limit})
	}
	return in, nil
}

// complete checks what follows the file, and the digest in the headers (RFC 9530).
func (in incoming) complete(sum []byte) error {
	if in.form != nil {
		return in.form.End()
	}
	for _, header := range in.digests {
		for member := range strings.SplitSeq(header, ",") {
			value, found := strings.CutPrefix(strings.TrimSpace(member), "sha-256=:")
			if !found {
				continue
			}
			want, err := base64.StdEncoding.DecodeString(strings.TrimSuffix(value, ":"))
			if err != nil || !slices.Equal(want, sum) {
				return invalid("files.digest_mismatch")
			}
		}
	}
	return nil
}

// The transfers that run at the same time on a node. Each holds a chunk in memory. A quarter is for staff, and no caller gets more than
// what stays free for others. Uploads, which their senders can make slow, do not take the places of downloads.
const (
	maxUploads   = 128
	maxDownloads = 128
)
