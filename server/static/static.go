// Package static sends files that the program holds in memory, each with its entity tag and, for clients that accept it, compressed.
package static

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"net/http"
	"sync"

	"github.com/gofiber/fiber/v2"

	"kontor/server/accept"
	"kontor/server/etag"
)

// File is the content of one file.
type File struct {
	Kind  string // its media type
	Plain []byte
	tag   string
	gzip  func() []byte // compresses on the first call; nil: the file is sent as it is; returns nil if compression saves nothing
}

// New returns a file that is sent as it is.
func New(kind string, body []byte) File {
	sum := sha256.Sum256(body)
	return File{Kind: kind, Plain: body, tag: hex.EncodeToString(sum[:8])}
}

// minCompressed is the smallest size that is compressed: below it, compression saves no network packet.
const minCompressed = 512

// NewCompressed returns a file that is compressed for clients that accept it.
func NewCompressed(kind string, body []byte) File {
	f := New(kind, body)
	if len(body) >= minCompressed {
		f.gzip = sync.OnceValue(func() []byte { return compress(body) })
	}
	return f
}

// Unpack returns a file that is stored in the compressed form in which it is sent.
func Unpack(kind string, packed []byte) (File, error) {
	reader, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return File{}, err
	}
	plain, err := io.ReadAll(reader)
	f := New(kind, plain)
	f.gzip = func() []byte { return packed }
	return f, err
}

// writers are gzip writers with the best compression. One takes 0.8 MB.
var writers = sync.Pool{New: func() any {
	writer, _ := gzip.NewWriterLevel(io.Discard, gzip.BestCompression) // The level is valid, so there is no error.
	return writer
}}

// compress returns the body compressed, or nil if that saves nothing.
func compress(body []byte) []byte {
	writer := writers.Get().(*gzip.Writer)
	defer writers.Put(writer)
	var packed bytes.Buffer
	writer.Reset(&packed)
	_, _ = writer.Write(body) // A bytes.Buffer returns no errors.
	_ = writer.Close()
	if packed.Len() >= len(body) {
		return nil
	}
	return bytes.Clone(packed.Bytes())
}

// Send answers a GET or HEAD request with the file, or with 304 to a client that has it. caching is the value of Cache-Control.
func (f File) Send(c *fiber.Ctx, caching string) {
	body, tag := f.Plain, f.tag
	if f.gzip != nil {
		c.Vary(fiber.HeaderAcceptEncoding)
		header := bytes.Join(c.Request().Header.PeekAll(fiber.HeaderAcceptEncoding), []byte(","))
		if coding, _ := accept.Coding(string(header), accept.Gzip); coding == accept.Gzip {
			if packed := f.gzip(); packed != nil {
				body, tag = packed, etag.ForCoding(f.tag, coding)
				c.Set(fiber.HeaderContentEncoding, coding)
			}
		}
	}
	c.Set(fiber.HeaderContentType, f.Kind)
	c.Set(fiber.HeaderCacheControl, caching)
	c.Set(fiber.HeaderETag, `"`+tag+`"`)
	if form, same := etag.NoneMatch(c.Get(fiber.HeaderIfNoneMatch), tag); same && form == tag {
		c.Response().Header.Del(fiber.HeaderContentEncoding)
		c.Status(http.StatusNotModified)
		return
	}
	c.Status(http.StatusOK).Response().SetBodyRaw(body) // fasthttp omits the body of a HEAD answer.
}
