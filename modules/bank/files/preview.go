package files

import (
	"context"
	"fmt"
	"net/http"
	"strconv"

	"github.com/gofiber/fiber/v2"

	"kontor/server/access"
	"kontor/server/apierr"
	"kontor/server/endpoint"
	"kontor/server/etag"
)

const (
	defaultWidth = 800
	minWidth     = 16
	maxWidth     = 2000 // pixels
	maxPage      = 10_000
)

// preview serves a picture of a page, which a worker process renders: without metadata, upright, on white. It is not stored anywhere.
func (s *Service) preview(ctx context.Context, r *endpoint.Request) error {
	var problems apierr.Fields
	query := r.Fiber.Request().URI().QueryArgs()
	page := number(&problems, "page", string(query.Peek("page")), 1, 1, maxPage)
	width := number(&problems, "width", string(query.Peek("width")), defaultWidth, minWidth, maxWidth)
	if err := problems.Err(); err != nil {
		return err
	}
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

// number reads a parameter of the query. An empty one has the default value.
func number(problems *apierr.Fields, name, text string, fallback, low, high int) int {
	if text == "" {
		return fallback
	}
	n, err := strconv.Atoi(text)
	switch {
	case err != nil:
		problems.Add(name, "invalid.integer")
	case n < low || n > high:
		problems.Add(name, "invalid.range", apierr.Args{"Min": low, "Max": high})
	}
	return n
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
