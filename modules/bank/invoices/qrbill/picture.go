package qrbill

import (
	"bytes"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/gif"
	"image/jpeg"
	"image/png"
	"io"

	"golang.org/x/image/bmp"
	"golang.org/x/image/tiff"
	"golang.org/x/image/webp"

	"kontor/modules/bank/invoices/qrbill/symbol"
	"kontor/modules/kit/exif"
)

// codec decodes one format of pictures.
type codec struct {
	config func(io.Reader) (image.Config, error)
	decode func(io.Reader) (image.Image, error)
}

var codecs = map[string]codec{
	kindPNG:  {png.DecodeConfig, png.Decode},
	kindJPEG: {jpeg.DecodeConfig, jpeg.Decode},
	kindGIF:  {gif.DecodeConfig, gif.Decode},
	kindBMP:  {bmp.DecodeConfig, bmp.Decode},
	kindWebP: {webp.DecodeConfig, webp.Decode},
}

// picture is a file with one image.
type picture struct {
	gray *symbol.Gray
	up   exif.Orientation
}

func (p *picture) pages() int                               { return 1 }
func (p *picture) close()                                   {}
func (p *picture) position(_ int, code symbol.Code) float64 { return height(p.up, code.X, code.Y) }

func (p *picture) page(_ int, finer bool) (*symbol.Gray, error) {
	if finer {
		return nil, nil // an image has no further detail
	}
	return p.gray, nil
}

func openPicture(file []byte, kind string, limits Limits) (source, error) {
	gray, err := decodePicture(file, codecs[kind], kind, limits)
	if err != nil {
		return nil, err
	}
	p := &picture{gray: gray}
	if kind == kindJPEG {
		p.up = readJPEGHeader(file).up
	}
	return p, nil
}

// decodePicture checks the header of an image against the limits, and decodes it.
func decodePicture(file []byte, c codec, kind string, limits Limits) (gray *symbol.Gray, err error) {
	defer func() {
		if p := recover(); p != nil {
			gray, err = nil, errorf(DamagedFile, "%s: decoder failed: %v", kind, p)
		}
	}()
	config, err := c.config(bytes.NewReader(file))
	if err != nil {
		return nil, decodeError(kind, err)
	}
	depth := bytesPerPixel(config.ColorModel)
	if isJPEG(file) { // also inside another format
		depth = readJPEGHeader(file).bytesPerPixel(config.ColorModel)
	}
	if err := limits.checkPicture(config, depth); err != nil {
		return nil, err
	}
	img, err := c.decode(bytes.NewReader(file))
	if err != nil {
		return nil, decodeError(kind, err)
	}
	return toGray(img), nil
}

func decodeError(kind string, err error) error {
	var jpegUnsupported jpeg.UnsupportedError
	var pngUnsupported png.UnsupportedError
	var tiffUnsupported tiff.UnsupportedError
	if errors.As(err, &jpegUnsupported) || errors.As(err, &pngUnsupported) || errors.As(err, &tiffUnsupported) ||
		errors.Is(err, bmp.ErrUnsupported) {
		return errorf(UnsupportedFile, "%s: %w", kind, err)
	}
	return &Error{Reason: DamagedFile, cause: fmt.Errorf("%s: %w", kind, err)}
}

// checkPicture rejects images whose decoding would exceed the limits. Depth is the memory in bytes per pixel.
func (l Limits) checkPicture(c image.Config, depth float64) error {
	if c.Width <= 0 || c.Height <= 0 {
		return errorf(DamagedFile, "image of %d x %d", c.Width, c.Height)
	}
	pixels := int64(c.Width) * int64(c.Height)
	if pixels > int64(l.Pixels) || c.Width > 1<<16 || c.Height > 1<<16 {
		return errorf(TooLarge, "image of %d x %d pixels", c.Width, c.Height)
	}
	if needs := int64(float64(pixels) * depth); needs > int64(l.Memory) {
		return errorf(TooLarge, "image of %d x %d pixels needs %d MB", c.Width, c.Height, needs>>20)
	}
	return nil
}

func bytesPerPixel(m color.Model) float64 {
	switch m {
	case color.GrayModel, color.AlphaModel:
		return 1
	case color.Gray16Model, color.Alpha16Model:
		return 2
	case color.YCbCrModel:
		return 3
	case color.RGBA64Model, color.NRGBA64Model:
		return 8
	}
	if _, ok := m.(color.Palette); ok {
		return 1
	}
	return 4
}
