package symbol

import (
	"errors"
	"fmt"

	"github.com/makiuchi-d/gozxing"
)

// bitmap is a black and white picture; 1 is dark.
type bitmap struct {
	bits []byte
	w, h int
}

var errUnsupported = errors.New("not supported")

// Luminance adapts a picture for the binarizers of gozxing without a copy.
func Luminance(g *Gray) gozxing.LuminanceSource { return luminance{g} }

// luminance adapts a Gray for gozxing, whose own conversion of images is slow.
type luminance struct{ *Gray }

func (l luminance) GetRow(y int, row []byte) ([]byte, error) {
	if y < 0 || y >= l.H {
		return nil, fmt.Errorf("row %d of %d", y, l.H)
	}
	return append(row[:0], l.Pix[y*l.W:(y+1)*l.W]...), nil
}

func (l luminance) GetMatrix() []byte       { return l.Pix }
func (l luminance) GetWidth() int           { return l.W }
func (l luminance) GetHeight() int          { return l.H }
func (l luminance) IsCropSupported() bool   { return false }
func (l luminance) IsRotateSupported() bool { return false }
func (l luminance) String() string          { return fmt.Sprintf("%d x %d", l.W, l.H) }

func (l luminance) Crop(int, int, int, int) (gozxing.LuminanceSource, error) {
	return nil, errUnsupported
}

func (l luminance) RotateCounterClockwise() (gozxing.LuminanceSource, error) {
	return nil, errUnsupported
}

func (l luminance) RotateCounterClockwise45() (gozxing.LuminanceSource, error) {
	return nil, errUnsupported
}

func (l luminance) Invert() gozxing.LuminanceSource { return l }

// hybrid converts a picture to black and white with the local thresholds of gozxing.
func hybrid(g *Gray) (*gozxing.BitMatrix, error) {
	return gozxing.NewHybridBinarizer(Luminance(g)).GetBlackMatrix()
}

// histogram converts a picture to black and white with one threshold for the whole picture.
func histogram(g *Gray) (*gozxing.BitMatrix, error) {
	return gozxing.NewGlobalHistgramBinarizer(Luminance(g)).GetBlackMatrix()
}

// toBitmap converts a matrix of gozxing.
func toBitmap(m *gozxing.BitMatrix) *bitmap {
	b := &bitmap{w: m.GetWidth(), h: m.GetHeight()}
	b.bits = make([]byte, b.w*b.h)
	for y := range b.h {
		row := b.bits[y*b.w : (y+1)*b.w]
		for x := range row {
			if m.Get(x, y) {
				row[x] = 1
			}
		}
	}
	return b
}

// invert exchanges dark and light in place.
func (b *bitmap) invert() {
	for i := range b.bits {
		b.bits[i] ^= 1
	}
}
