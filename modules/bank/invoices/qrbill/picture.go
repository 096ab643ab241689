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

// decodePicture decodes an image in shades of grey.
func decodePicture(file []byte, c codec, kind string, limits Limits) (gray *symbol.Gray, err error) {
	err = decodeImage(file, c, kind, limits, func(img image.Image) { gray = toGray(img) })
	return gray, err
}

// decodeImage checks the header of an image against the limits, decodes it and calls use with it.
func decodeImage(file []byte, c codec, kind string, limits Limits, use func(img image.Image)) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = errorf(DamagedFile, "%s: decoder failed: %v", kind, p)
		}
	}()
	config, err := c.config(bytes.NewReader(file))
	if err != nil {
		return decodeError(kind, err)
	}
	depth := bytesPerPixel(config.ColorModel)
	if isJPEG(file) { // also inside another format
		depth = readJPEGHeader(file).bytesPerPixel(config.ColorModel)
	}
	if err := limits.checkPicture(config, depth); err != nil {
		return err
	}
	img, err := c.decode(bytes.NewReader(file))
	if err != nil {
		return decodeError(kind, err)
	}
	use(img)
	return nil
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

// toGray converts an image to shades of grey, on white paper where it is transparent. It reads the frequent types of images
// directly, because image.Image.At is many times slower.
func toGray(img image.Image) *symbol.Gray {
	bounds := img.Bounds()
	out := symbol.NewGray(bounds.Dx(), bounds.Dy())
	for y := range out.H {
		row := out.Pix[y*out.W : (y+1)*out.W]
		switch m := img.(type) {
		case *image.Gray:
			copy(row, m.Pix[y*m.Stride:])
		case *image.YCbCr:
			copy(row, m.Y[y*m.YStride:])
		case *image.NYCbCrA:
			copy(row, m.Y[y*m.YStride:])
			for x := range row {
				row[x] = onWhite(uint32(row[x]), uint32(m.A[y*m.AStride+x]))
			}
		case *image.Paletted:
			grayPalette(row, m.Pix[y*m.Stride:], m.Palette)
		case *image.RGBA:
			pix := m.Pix[y*m.Stride:]
			for x := range row {
				p := pix[4*x : 4*x+4]
				row[x] = byte(min(luma(uint32(p[0]), uint32(p[1]), uint32(p[2]))+255-uint32(p[3]), 255))
			}
		case *image.NRGBA:
			pix := m.Pix[y*m.Stride:]
			for x := range row {
				p := pix[4*x : 4*x+4]
				row[x] = onWhite(luma(uint32(p[0]), uint32(p[1]), uint32(p[2])), uint32(p[3]))
			}
		default:
			for x := range row {
				row[x] = grayOf(img.At(bounds.Min.X+x, bounds.Min.Y+y))
			}
		}
	}
	return out
}

// luma returns the luminance of a colour.
func luma(r, g, b uint32) uint32 { return (77*r + 150*g + 29*b + 128) >> 8 }

func onWhite(gray, alpha uint32) byte { return byte((gray*alpha + 255*(255-alpha)) / 255) }

func grayOf(c color.Color) byte {
	r, g, b, a := c.RGBA() // multiplied by the transparency
	return byte(min(luma(r>>8, g>>8, b>>8)+255-a>>8, 255))
}

func grayPalette(row, indices []byte, palette color.Palette) {
	var shades [256]byte
	for i, c := range palette[:min(len(palette), 256)] {
		shades[i] = grayOf(c)
	}
	for x := range row {
		row[x] = shades[indices[x]]
	}
}

// height returns the vertical position of a point in a picture that was stored with an orientation. Only comparisons within one
// picture are meaningful. Codes are read in any orientation; it only determines the order of several bills.
func height(o exif.Orientation, x, y float64) float64 {
	switch o {
	case 3, 4:
		return -y
	case 5, 6:
		return x
	case 7, 8:
		return -x
	}
	return y
}

// orientation returns the orientation of a page.
func (t *tiffFile) orientation(directory uint32) exif.Orientation {
	return exif.Orientation(t.first(directory, exif.TagOrientation, 0))
}

// source is an open file that renders its pages in shades of grey.
type source interface {
	pages() int
	// page renders a page, counted from 0. With finer, it renders more detail, or returns nil when there is no more.
	page(index int, finer bool) (*symbol.Gray, error)
	// position returns the vertical position of a code on the page in its intended orientation. Only comparisons within one
	// page are meaningful.
	position(index int, code symbol.Code) float64
	close()
}

// open opens a file of a readable kind. Only documents need the engine.
func open(file []byte, kind string, e *engine, limits Limits) (source, error) {
	switch kind {
	case kindPDF:
		return e.openPDF(file, limits)
	case kindTIFF:
		return openTIFF(file, limits)
	default:
		return openPicture(file, kind, limits)
	}
}
