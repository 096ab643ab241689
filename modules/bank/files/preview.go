package files

import (
	"cmp"
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
