package profile

import (
	"bytes"
	"context"
	"fmt"
	"image"
	"image/draw"
	"image/jpeg"
	"image/png"

	"github.com/disintegration/imaging"

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
	problems.Add(fileMember, key, args...)
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
