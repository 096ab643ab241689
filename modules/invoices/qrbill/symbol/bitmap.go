package symbol

import (
	"errors"
	"fmt"

	"github.com/makiuchi-d/gozxing"
)

// bitmap is a picture in black and white; 1 is dark.
type bitmap struct {
	bits []byte
	w, h int
}

var errUnsupported = errors.New("not needed by the readers of QR codes")

// Luminance shows a picture to the binarizers of gozxing, without a copy.
func Luminance(g *Gray) gozxing.LuminanceSource { return luminance{g} }

// luminance hands a Gray to gozxing without its slow conversion of images.
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

// hybrid separates dark and light by gozxing's local thresholds.
func hybrid(g *Gray) (*gozxing.BitMatrix, error) {
	return gozxing.NewHybridBinarizer(Luminance(g)).GetBlackMatrix()
}

// histogram separates dark and light by one threshold for the whole picture.
func histogram(g *Gray) (*gozxing.BitMatrix, error) {
	return gozxing.NewGlobalHistgramBinarizer(Luminance(g)).GetBlackMatrix()
}

// toBitmap unpacks gozxing's matrix.
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
