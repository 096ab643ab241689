package profile

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"image"
	"image/draw"
	"image/jpeg"
	"image/png"
	"time"

	"github.com/disintegration/imaging"

	"kontor/modules/kit/exif"
	"kontor/modules/kit/sandbox"
	"kontor/modules/kit/upload"
	"kontor/server/access"
	"kontor/server/apierr"
)

// The sizes of a picture: width and height in pixels.
const (
	largePixels = 512
	smallPixels = 128
)

const jpegQuality = 88

// render renders the pictures that are served from a file. It returns apierr.InvalidFileType and apierr.InvalidImage, and
// apierr.Unavailable if too many pictures are waiting.
func (s *Service) render(ctx context.Context, file []byte) ([]picture, error) {
	f := formatOf(file)
	if f == "" {
		return nil, apierr.InvalidFileType
	}
	size, err := f.size(file)
	if err != nil {
		return nil, invalidImage(err, "profile.damaged")
	}
	if size.X < 1 || size.Y < 1 || int64(size.X) > s.MaxPixels/int64(size.Y) {
		return nil, invalidImage(nil, "profile.too_many_pixels", apierr.Args{"Max": s.MaxPixels})
	}
	found := f.structure(file)
	if !f.allowedAfter(file[found.end:]) {
		return nil, invalidImage(nil, "profile.foreign_data")
	}
	release, err := s.decodeLimit.acquire(ctx, access.From(ctx).UserID, int64(size.X)*int64(size.Y))
	if err != nil {
		return nil, err
	}
	defer release()
	return s.renderInWorker(ctx, file, workerRequest{f, found.orientation})
}

// renderAll decodes a file and renders the pictures, in a worker process.
func renderAll(file []byte, o workerRequest) ([]renderedPicture, error) {
	square, err := o.Format.square(file)
	if err != nil {
		return nil, err
	}
	large := o.Orientation.Turn(imaging.Resize(square, largePixels, largePixels, imaging.Lanczos))
	return encodeAll(large, imaging.Resize(large, smallPixels, smallPixels, imaging.Lanczos))
}

// invalidImage returns the error for a file that cannot be used, with the key of its reason. The cause may be nil.
func invalidImage(cause error, key string, args ...apierr.Args) error {
	var problems apierr.Fields
	problems.Add(upload.FileMember, key, args...)
	return &apierr.Error{Kind: apierr.InvalidImage, Fields: &problems, Cause: cause}
}

// size reads width and height without decoding the picture.
func (f format) size(file []byte) (image.Point, error) {
	decode := jpeg.DecodeConfig
	if f == pngFormat {
		decode = png.DecodeConfig
	}
	config, err := decode(bytes.NewReader(file))
	return image.Pt(config.Width, config.Height), err
}

// square decodes the picture and returns the square in its middle as a plain bitmap, so that later steps do not depend on the
// client's data. Decoders have panicked over pictures before, which ends the worker.
func (f format) square(file []byte) (*image.RGBA, error) {
	decode := jpeg.Decode
	if f == pngFormat {
		decode = png.Decode
	}
	whole, err := decode(bytes.NewReader(file))
	if err != nil {
		return nil, err
	}
	bounds := whole.Bounds()
	side := min(bounds.Dx(), bounds.Dy())
	from := bounds.Min.Add(image.Pt((bounds.Dx()-side)/2, (bounds.Dy()-side)/2))
	plain := image.NewRGBA(image.Rect(0, 0, side, side))
	draw.Draw(plain, plain.Bounds(), whole, from, draw.Src)
	return plain, nil
}

// encodeAll encodes the pictures, as JPEG if they are opaque, and otherwise as PNG.
func encodeAll(pictures ...*image.NRGBA) ([]renderedPicture, error) {
	opaque := pictures[0].Opaque()
	encoded := make([]renderedPicture, 0, len(pictures))
	for _, img := range pictures {
		var b bytes.Buffer
		p := renderedPicture{Pixels: int64(img.Bounds().Dx()), MediaType: "image/png"}
		var err error
		if opaque {
			p.MediaType = "image/jpeg"
			// Opaque bitmaps of both kinds are equal, and the encoder is faster with this one.
			err = jpeg.Encode(&b, &image.RGBA{Pix: img.Pix, Stride: img.Stride, Rect: img.Rect}, &jpeg.Options{Quality: jpegQuality})
		} else {
			err = png.Encode(&b, img)
		}
		if err != nil {
			return nil, fmt.Errorf("encode avatar: %w", err)
		}
		p.Content = b.Bytes()
		encoded = append(encoded, p)
	}
	return encoded, nil
}

// pictureWorker is the kind of the worker processes that decode and render pictures. See package sandbox.
const pictureWorker = "avatar"

// A process that was started as a worker does not return from here.
func init() {
	sandbox.Serve(pictureWorker, func([]string) (sandbox.Work, error) { return work, nil })
}

// workerRequest is sent to a worker with a file whose header is within the limits.
type workerRequest struct {
	Format      format
	Orientation exif.Orientation
}

// renderedPicture is a picture in the answer of a worker.
type renderedPicture struct {
	Pixels    int64
	MediaType string
	Content   []byte
}

const (
	drawCPU  = 10 * time.Second // a picture of the largest size takes two seconds
	drawTime = 20 * time.Second // by the clock, on a busy machine

	// Memory of a worker: the program, and for each pixel the decoder's memory and the plain bitmap.
	baseMemory  = 256 << 20
	pixelMemory = 20

	residentAfterFile = 96 << 20
	maxAnswer         = 8 << 20 // two PNG pictures
)

func newPool(maxPixels int64) *sandbox.Pool {
	return sandbox.NewPool(sandbox.Config{Kind: pictureWorker, Memory: baseMemory + pixelMemory*maxPixels,
		Resident: residentAfterFile, MaxAnswer: maxAnswer})
}

// work renders the pictures in a worker process. The answer is empty for a damaged file.
func work(request, file []byte, _ func([]byte) error) ([]byte, error) {
	var o workerRequest
	if err := json.Unmarshal(request, &o); err != nil {
		return nil, fmt.Errorf("request of a picture worker: %w", err)
	}
	defer sandbox.LimitCPU(drawCPU)()
	pictures, err := renderAll(file, o)
	if err != nil {
		return nil, nil
	}
	return json.Marshal(pictures)
}

var errDamaged = errors.New("the worker could not decode the picture")

// renderInWorker renders the pictures in a worker process. It returns apierr.InvalidImage for a file that cannot be decoded
// within the limits, and apierr.Unavailable if there is no worker.
func (s *Service) renderInWorker(ctx context.Context, file []byte, o workerRequest) ([]picture, error) {
	request, err := json.Marshal(o)
	if err != nil {
		return nil, fmt.Errorf("request of a picture worker: %w", err)
	}
	limited, cancel := context.WithTimeout(ctx, drawTime)
	defer cancel()
	lease, err := s.pool.Acquire(limited)
	if err != nil {
		return nil, unavailable(err)
	}
	answer, err := lease.Run(limited, request, file, func([]byte) error { return errDamaged })
	if crash, ok := errors.AsType[*sandbox.CrashError](err); ok && crash.Failure == sandbox.Killed || ctx.Err() != nil {
		return nil, unavailable(err)
	}
	if err != nil || len(answer) == 0 {
		return nil, invalidImage(errors.Join(errDamaged, err), "profile.damaged")
	}
	return picturesOf(answer)
}

func unavailable(cause error) error {
	return &apierr.Error{Kind: apierr.Unavailable, Cause: cause, Retry: retryDraw}
}

// picturesOf reads the answer of a worker. One that was taken over by a file may send anything; but nothing is served
// that is not a picture of its type.
func picturesOf(answer []byte) ([]picture, error) {
	var all []renderedPicture
	if err := json.Unmarshal(answer, &all); err != nil {
		return nil, invalidImage(err, "profile.damaged")
	}
	var pictures []picture
	for _, d := range all {
		if f := formatOf(d.Content); f == "" || d.MediaType != "image/"+string(f) {
			return nil, invalidImage(errDamaged, "profile.damaged")
		}
		pictures = append(pictures, picture{pixels: d.Pixels, mediaType: d.MediaType, content: d.Content})
	}
	if len(pictures) != 2 || pictures[0].pixels != largePixels || pictures[1].pixels != smallPixels {
		return nil, invalidImage(errDamaged, "profile.damaged")
	}
	return pictures, nil
}
