package server

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"net/http"

	"github.com/gofiber/fiber/v2"

	"kontor/locales"
	"kontor/server/apierr"
	"kontor/server/endpoint"
	"kontor/server/etag"
	"kontor/server/openapi"
	"kontor/web"
)

// document is the API document as it is sent.
type document struct {
	plain, gzip []byte
	etag        string
}

// Document builds the API document. The error lists everything that rows and types do not describe.
func (s *Server) Document() (*openapi.Document, error) {
	return openapi.Build(openapi.Options{Table: s.Endpoints, BaseURL: s.BaseURL, Health: health{}, Text: s.documentText})
}

// makeDocument builds and compresses the document. Gaps are programming errors that tests find; the document is useful
// without them.
func (s *Server) makeDocument() (document, error) {
	built, err := s.Document()
	if err != nil {
		s.Log.Warn("the API document is incomplete", "cause", err)
	}
	plain, err := built.JSON()
	if err != nil {
		return document{}, err
	}
	var compressed bytes.Buffer
	writer, err := gzip.NewWriterLevel(&compressed, gzip.BestCompression)
	if err != nil {
		return document{}, err
	}
	if _, err := writer.Write(plain); err != nil {
		return document{}, err
	}
	if err := writer.Close(); err != nil {
		return document{}, err
	}
	sum := sha256.Sum256(plain)
	return document{plain, compressed.Bytes(), hex.EncodeToString(sum[:8])}, nil
}

// documentText returns the text of an error for the document. Its placeholders stay general: the same text has other numbers
// in other operations.
func (s *Server) documentText(key string) string {
	return s.Texts.Text(locales.Default, key, map[string]any{"Max": "N", "Limit": "of the setting", "Time": "that time", "Explanation": "The file cannot be read."})
}

// serveDocument sends the document, compressed to those who take it.
func (s *Server) serveDocument(_ context.Context, r *endpoint.Request) error {
	d, err := s.document()
	if err != nil {
		return apierr.ServerError.Wrap(err)
	}
	header, answer := &r.Fiber.Request().Header, r.Fiber.Response()
	body, tag := d.plain, d.etag
	answer.Header.Add(fiber.HeaderVary, fiber.HeaderAcceptEncoding)
	if web.TakesGzip(listHeader(header, fiber.HeaderAcceptEncoding)) {
		body, tag = d.gzip, d.etag+"-gzip"
		answer.Header.Set(fiber.HeaderContentEncoding, "gzip")
	}
	answer.Header.SetContentType(fiber.MIMEApplicationJSON)
	answer.Header.Set(fiber.HeaderCacheControl, "no-cache")
	setETag(&answer.Header, tag)
	if _, same := etag.NoneMatch(string(header.Peek(fiber.HeaderIfNoneMatch)), tag); same {
		answer.Header.Del(fiber.HeaderContentEncoding)
		answer.SetStatusCode(http.StatusNotModified)
		return nil
	}
	answer.SetStatusCode(http.StatusOK)
	answer.SetBodyRaw(body)
	return nil
}
