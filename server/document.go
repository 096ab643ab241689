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
	"kontor/server/openapi"
	"kontor/web"
)

// document is the API document as it is sent.
type document struct {
	plain, gzip []byte
	etag        string
}

// Document makes the API document anew. The error names everything that a row or a type leaves unsaid.
func (s *Server) Document() (*openapi.Document, error) {
	return openapi.Build(openapi.Options{Table: s.Endpoints, BaseURL: s.BaseURL, Health: health{}, Text: s.documentText})
}

// makeDocument makes the document from the table. What a row leaves unsaid is a mistake in the program that the tests
// find; the document is of use without it.
func (s *Server) makeDocument() (document, error) {
	built, err := s.Document()
	if err != nil {
		s.Log.Warn("the API document is not complete", "cause", err)
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

// documentText words an error for the examples, with a number where the text has a bound.
func (s *Server) documentText(key string) string {
	return s.Texts.Text(locales.Default, key, map[string]any{"Max": endpoint.DefaultMaxBody, "Explanation": "The file holds no QR code."})
}

// serveDocument sends the document, compressed to those who take it.
func (s *Server) serveDocument(_ context.Context, r *endpoint.Request) error {
	d, err := s.document()
	if err != nil {
		return apierr.ServerError.Wrap(err)
	}
	header, answer := &r.Fiber.Request().Header, r.Fiber.Response()
	body, etag := d.plain, d.etag
	answer.Header.Add(fiber.HeaderVary, fiber.HeaderAcceptEncoding)
	if web.TakesGzip(listHeader(header, fiber.HeaderAcceptEncoding)) {
		body, etag = d.gzip, d.etag+"-gzip"
		answer.Header.Set(fiber.HeaderContentEncoding, "gzip")
	}
	answer.Header.SetContentType(fiber.MIMEApplicationJSON)
	answer.Header.Set(fiber.HeaderCacheControl, "no-cache")
	answer.Header.Set(fiber.HeaderETag, `"`+etag+`"`)
	if endpoint.NoneMatch(string(header.Peek(fiber.HeaderIfNoneMatch)), etag) {
		answer.Header.Del(fiber.HeaderContentEncoding)
		answer.SetStatusCode(http.StatusNotModified)
		return nil
	}
	answer.SetStatusCode(http.StatusOK)
	answer.SetBodyRaw(body)
	return nil
}
