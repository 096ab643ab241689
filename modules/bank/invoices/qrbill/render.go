package qrbill

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"image"
	"image/color"
	"image/draw"
	"image/jpeg"

	"github.com/disintegration/imaging"
	"github.com/klippa-app/go-pdfium/enums"

	"kontor/modules/kit/exif"
	"kontor/modules/kit/sandbox"
)

const (
	previewRatio    = 2  // height to width, at most
	previewQuality  = 82 // of the JPEG
	previewFallback = 50 // of a JPEG that would exceed maxPreviewBytes
)

// preview renders a page and sends its JPEG, in a worker process.
func (w worker) preview(j job, file []byte, send func([]byte) error) ([]byte, error) {
	page, pages, err := w.render(j, file)
	if err != nil {
		return json.Marshal(outcomeOf(err))
	}
	encoded, err := encodePreview(page)
	if err != nil {
		return json.Marshal(outcomeOf(err))
	}
	if err := send(encoded); err != nil {
		return nil, err
	}
	return json.Marshal(outcome{Pages: pages})
}

func encodePreview(page image.Image) ([]byte, error) {
	var b bytes.Buffer
	for _, quality := range []int{previewQuality, previewFallback} {
		b.Reset()
		if err := jpeg.Encode(&b, page, &jpeg.Options{Quality: quality}); err != nil {
			return nil, errorf(TooComplex, "encode the preview: %w", err)
		}
		if b.Len() <= maxPreviewBytes {
			return b.Bytes(), nil
		}
	}
	return nil, errorf(TooComplex, "preview of %d bytes", b.Len())
}

func (w worker) render(j job, file []byte) (page image.Image, pages int, err error) {
	if j.Kind == kindPDF {
		return w.engine.renderPreview(file, j)
	}
	if j.Page > 1 {
		return nil, 0, errorf(PageOutOfRange, "page %d of a picture", j.Page)
	}
	page, err = renderPicture(file, j)
	return page, 1, err
}

// renderPicture decodes a picture and returns it upright, on white and no larger than asked.
func renderPicture(file []byte, j job) (page image.Image, err error) {
	defer sandbox.LimitCPU(j.Limits.Time)()
	if j.Kind != kindJPEG && j.Kind != kindPNG {
		return nil, &Error{Reason: UnsupportedFile, Format: j.Kind}
	}
	err = decodeImage(file, codecs[j.Kind], j.Kind, j.Limits, func(whole image.Image) {
		up := exif.Upright
		if j.Kind == kindJPEG {
			up = readJPEGHeader(file).up
		} else if data := pngEXIF(file); data != nil {
			up = exif.OrientationOf(data)
		}
		width, height := j.Width, previewRatio*j.Width
		if up.IsQuarterTurn() {
			width, height = height, width
		}
		small := up.Turn(imaging.Fit(whole, width, height, imaging.Box))
		white := image.NewRGBA(small.Bounds())
		draw.Draw(white, white.Bounds(), image.NewUniform(color.White), image.Point{}, draw.Src)
		draw.Draw(white, white.Bounds(), small, small.Bounds().Min, draw.Over)
		page = white
	})
	return page, err
}

// pngEXIF returns the EXIF data of a PNG, or nil (PNG, third edition, section 11.3.3.6).
func pngEXIF(file []byte) []byte {
	const signature, head, check = 8, 8, 4
	for at := signature; at+head <= len(file); {
		length := int64(binary.BigEndian.Uint32(file[at:]))
		if length > int64(len(file)-at-head) {
			return nil
		}
		if string(file[at+4:at+head]) == "eXIf" {
			return file[at+head:][:length]
		}
		at += head + int(length) + check
	}
	return nil
}

// renderPreview renders a page of a document in colour, at most j.Width pixels wide. It ignores scripts, actions and attachments.
func (e *engine) renderPreview(file []byte, j job) (page image.Image, pages int, err error) {
	d, err := e.openPDF(file, j.Limits)
	if err != nil {
		return nil, 0, err
	}
	defer d.close()
	if j.Page > d.count {
		return nil, 0, errorf(PageOutOfRange, "page %d of %d", j.Page, d.count)
	}
	width := float64(j.Width)
	err = d.draw(j.Page-1, enums.FPDF_BITMAP_FORMAT_BGRX, 0,
		func(w, h float64) float64 { return min(width/w, previewRatio*width/h) },
		func(r raster) {
			out := image.NewRGBA(image.Rect(0, 0, r.w, r.h))
			for y := range r.h {
				from, to := r.pixels[y*r.stride:], out.Pix[y*out.Stride:]
				for x := range r.w {
					to[4*x], to[4*x+1], to[4*x+2], to[4*x+3] = from[4*x+2], from[4*x+1], from[4*x], 0xff
				}
			}
			page = out
		})
	return page, d.count, err
}

// PreviewOptions are the options of a preview.
type PreviewOptions struct {
	Page   int    // counted from 1
	Width  int    // the maximum, in pixels; the height is at most twice as much
	Caller string // as in Options
}

// Picture is a page of a file as a picture.
type Picture struct {
	JPEG  []byte
	Pages int // of the file
}

// maxPreviewBytes bounds the JPEG of a preview.
const maxPreviewBytes = 4 << 20

// Preview renders a page of a PDF, or a JPEG or PNG, as a new picture: upright, on white, without metadata. It loads the file when a slot is
// free, and shares slots and workers with [Reader.Read]. It returns the same errors, and those of load unchanged.
func (r *Reader) Preview(ctx context.Context, load func() ([]byte, error), options PreviewOptions) (picture Picture, err error) {
	end, crash, err := r.inSlot(ctx, options.Caller, 1, load, job{Page: max(1, options.Page), Width: options.Width}, func(part []byte) error {
		picture.JPEG = part
		return nil
	})
	if err == nil {
		err = crash
	}
	if err == nil {
		err = end.err()
	}
	if err != nil {
		return Picture{}, err
	}
	if !isJPEG(picture.JPEG) || len(picture.JPEG) > maxPreviewBytes { // a worker that a file has taken over may send anything
		return Picture{}, errorf(DamagedFile, "the worker has sent no picture")
	}
	picture.Pages = end.Pages
	return picture, nil
}
