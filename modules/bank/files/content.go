package files

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/gofiber/fiber/v2"

	"kontor/modules/kit/types"
	"kontor/modules/kit/upload"
	"kontor/server/access"
	"kontor/server/apierr"
	"kontor/server/endpoint"
	"kontor/server/etag"
)

const (
	// readTime is how long one read of a chunk may take.
	readTime = 10 * time.Second
	// chunkTime is how long a client may take to receive a chunk.
	chunkTime = 30 * time.Second
)

// idOf returns the id in the path of a request.
func idOf(r *endpoint.Request, n int, name string) (string, error) {
	id, err := types.ParseID(r.Params[n])
	if err != nil {
		return "", apierr.Invalid(name, "invalid.uuid")
	}
	return id, nil
}

// content serves the file as it was uploaded, also a range of it, as a download: a browser must not show it in the origin of the
// console. It returns apierr.FileNotFound, apierr.NoAccess, apierr.FileBeingChecked and apierr.FileInfected.
func (s *Service) content(ctx context.Context, r *endpoint.Request) error {
	f, err := s.openFile(ctx, r)
	if err != nil {
		return err
	}
	header := &r.Fiber.Response().Header
	tag := f.SHA256
	header.Set(fiber.HeaderETag, `"`+tag+`"`)
	header.Set(fiber.HeaderAcceptRanges, "bytes")
	header.Set(fiber.HeaderContentDisposition, disposition(f.Name))
	protect(header)
	if sum, err := hex.DecodeString(f.SHA256); err == nil {
		header.Set("Repr-Digest", "sha-256=:"+base64.StdEncoding.EncodeToString(sum)+":")
	}
	if _, known := etag.NoneMatch(string(r.Fiber.Request().Header.Peek(fiber.HeaderIfNoneMatch)), tag); known {
		r.Fiber.Response().SetStatusCode(http.StatusNotModified)
		return nil
	}
	part := wholeOf(f.Size)
	if ranges := r.Fiber.Request().Header.PeekAll(fiber.HeaderRange); len(ranges) == 1 && matchesRange(r, tag) {
		asked, satisfiable := rangeOf(string(ranges[0]), f.Size)
		if !satisfiable {
			header.Set(fiber.HeaderContentRange, "bytes */"+strconv.FormatInt(f.Size, 10))
			return apierr.RangeBeyondEnd
		}
		if asked != nil {
			part = *asked
			header.Set(fiber.HeaderContentRange, fmt.Sprintf("bytes %d-%d/%d", part.first, part.last, f.Size))
			r.Fiber.Response().SetStatusCode(http.StatusPartialContent)
		}
	}
	header.SetContentType(f.MediaType)
	return s.send(ctx, r, f, part)
}

// protect keeps browsers from running the content, and caches from keeping it.
func protect(header interface{ Set(name, value string) }) {
	header.Set(fiber.HeaderCacheControl, "private, no-store")
	header.Set(fiber.HeaderContentSecurityPolicy, "default-src 'none'; sandbox")
	header.Set("Cross-Origin-Resource-Policy", "same-origin")
	header.Set(fiber.HeaderXContentTypeOptions, "nosniff")
}

// openFile finds the file of a request, if the caller may open it.
func (s *Service) openFile(ctx context.Context, r *endpoint.Request) (StoredFile, error) {
	id, err := idOf(r, 0, "id")
	if err != nil {
		return StoredFile{}, err
	}
	f, err := s.find(ctx, s.db, id, access.Read)
	if err == nil {
		err = f.readable()
	}
	return f, err
}

// matchesRange reports whether a range is wanted of the content that the file has (RFC 9110, section 13.1.5). There are no dates.
func matchesRange(r *endpoint.Request, tag string) bool {
	condition := string(r.Fiber.Request().Header.Peek(fiber.HeaderIfRange))
	return condition == "" || condition == `"`+tag+`"`
}

// send writes a part of the content while the client reads it, and reports the access to the audit trail.
func (s *Service) send(ctx context.Context, r *endpoint.Request, f StoredFile, part span) error {
	cipher, err := s.cipher(f)
	if err != nil {
		return err
	}
	if r.Fiber.Method() == http.MethodHead {
		r.Fiber.Response().Header.SetContentLength(int(part.length()))
		r.Fiber.Response().SkipBody = true
		return nil
	}
	caller := access.From(ctx)
	release, ok := s.downloads.Take(caller.UserID, caller.Staff())
	if !ok {
		return apierr.TooManyAtOnce.RetryAfter(time.Second)
	}
	body := &reader{Service: s, ctx: endpoint.Detach(context.Background(), ctx), cipher: cipher, chunks: chunksOf(f.Size), next: part.first, end: part.last + 1,
		connection: r.Fiber.Context().Conn(), release: release}
	if err := body.fill(); err != nil { // an error can still be answered
		release()
		return err
	}
	endpoint.Report(ctx, endpoint.Event{Kind: endpoint.Reading, Action: "files.download", RecType: auditTypes[f.RecordType], RecID: f.ID})
	r.Fiber.Response().SetBodyStream(body, int(part.length()))
	return nil
}

// reader decrypts a part of a file, chunk by chunk, while the answer is written. The request has ended by then.
type reader struct {
	*Service
	ctx        context.Context // of [endpoint.Detach]
	cipher     *upload.Cipher
	chunks     int64
	next, end  int64 // the bytes of the content that remain
	ready      bytes.Reader
	connection net.Conn // nil: none to wait for
	release    func()
}

// Read returns the next bytes.
func (r *reader) Read(p []byte) (int, error) {
	if r.ready.Len() == 0 {
		if r.next >= r.end {
			return 0, io.EOF
		}
		if err := r.fill(); err != nil {
			return 0, err
		}
	}
	return r.ready.Read(p)
}

// fill reads the next chunk, if the caller's session has not ended. Each chunk has its own time to reach the client.
func (r *reader) fill() error {
	ctx, err := endpoint.Continue(r.ctx)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, readTime)
	defer cancel()
	number := r.next / chunkBytes
	plain, err := r.readChunk(ctx, r.db, r.cipher, number, r.chunks)
	if err != nil {
		return err
	}
	from := r.next - number*chunkBytes
	to := min(r.end-number*chunkBytes, int64(len(plain)))
	if from >= to {
		return fmt.Errorf("chunk %d of file %s is too short", number, r.cipher.ID)
	}
	r.ready.Reset(plain[from:to])
	r.next += to - from
	if r.connection != nil {
		return r.connection.SetWriteDeadline(time.Now().Add(chunkTime))
	}
	return nil
}

// Close releases the place of the download. The engine calls it when the answer was written, or the connection was lost.
func (r *reader) Close() error {
	r.release()
	return nil
}

const (
	keyTable   = "files"
	label      = "kontor/file"
	chunkBytes = 256<<10 - upload.TagBytes // of content; the stored chunk has 256 KiB
)

// place is authenticated with a chunk: its number, and whether it is the last one, so that chunks cannot be exchanged, repeated, reordered
// or left out.
func place(number int64, last bool) []byte {
	place := binary.BigEndian.AppendUint64(make([]byte, 4, 13), uint64(number)) //nolint:gosec // numbers are not negative
	if last {
		return append(place, 1)
	}
	return append(place, 0)
}

// chunksOf returns the number of chunks of a file.
func chunksOf(size int64) int64 { return (size + chunkBytes - 1) / chunkBytes }

// span is a part of a file, both ends included.
type span struct{ first, last int64 }

func wholeOf(size int64) span { return span{0, size - 1} }

func (s span) length() int64 { return s.last - s.first + 1 }

// rangeOf reads a header Range (RFC 9110, section 14.1.2) of a file that is not empty. It returns nil for a header that is ignored: of
// another unit, malformed, or with several ranges, which would need more than one pass over the file. satisfiable is false for a range
// beyond the end.
func rangeOf(header string, size int64) (asked *span, satisfiable bool) {
	unit, set, found := strings.Cut(header, "=")
	if !found || !strings.EqualFold(strings.TrimSpace(unit), "bytes") {
		return nil, true
	}
	from, to, found := strings.Cut(strings.TrimSpace(set), "-")
	if !found || strings.Contains(set, ",") {
		return nil, true
	}
	first, hasFirst := position(from)
	last, hasLast := position(to)
	switch {
	case from == "" && hasLast:
		if last == 0 {
			return nil, false
		}
		return &span{max(0, size-last), size - 1}, true
	case !hasFirst || to != "" && (!hasLast || last < first):
		return nil, true
	case first >= size:
		return nil, false
	case to == "":
		return &span{first, size - 1}, true
	}
	return &span{first, min(last, size-1)}, true
}

// position reads a number of a range. Numbers beyond any file count as the largest one.
func position(text string) (int64, bool) {
	if text == "" || len(text) > 64 || strings.Trim(text, "0123456789") != "" {
		return 0, false
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return 1<<62 - 1, true
	}
	return n, true
}
