package qrbill_test

import (
	"bytes"
	"encoding/binary"
	"image"
	"image/draw"
	"image/jpeg"
	"image/png"
	"slices"
	"testing"

	"kontor/modules/bank/invoices/qrbill"
)

// Two bills of the corpus, and their IBANs.
const (
	upper, upperIBAN = "qr-only-b27-05.png", "CH470023074453375849A"
	lower, lowerIBAN = "qr-only-b81-03.png", "CH6930934140102991248"
)

// sheet returns a page with two bills, one above the other.
func sheet(t *testing.T) *image.Gray {
	t.Helper()
	page := image.NewGray(image.Rect(0, 0, 700, 1300))
	draw.Draw(page, page.Bounds(), image.White, image.Point{}, draw.Src)
	for i, name := range []string{upper, lower} {
		code, err := png.Decode(bytes.NewReader(load(t, name)))
		if err != nil {
			t.Fatal(err)
		}
		at := image.Pt(50, 50+600*i)
		draw.Draw(page, code.Bounds().Sub(code.Bounds().Min).Add(at), code, code.Bounds().Min, draw.Src)
	}
	return page
}

// rotated returns a page as a camera stores it in an orientation.
func rotated(page *image.Gray, orientation int) *image.Gray {
	w, h := page.Rect.Dx(), page.Rect.Dy()
	stored := image.NewGray(image.Rect(0, 0, w, h))
	if orientation >= 5 {
		stored = image.NewGray(image.Rect(0, 0, h, w))
	}
	for y := range h {
		for x := range w {
			at := []image.Point{{x, y}, {w - 1 - x, y}, {w - 1 - x, h - 1 - y}, {x, h - 1 - y},
				{y, x}, {y, w - 1 - x}, {h - 1 - y, w - 1 - x}, {h - 1 - y, x}}[orientation-1]
			stored.SetGray(at.X, at.Y, page.GrayAt(x, y))
		}
	}
	return stored
}

// tiffHeader returns the header of a TIFF whose entries are short integers.
func tiffHeader(entries ...uint16) []byte {
	b := []byte("MM\x00*\x00\x00\x00\x08")
	b = binary.BigEndian.AppendUint16(b, uint16(len(entries)/2))
	for pair := range slices.Chunk(entries, 2) {
		b = binary.BigEndian.AppendUint16(b, pair[0])
		b = append(b, 0, 3, 0, 0, 0, 1)
		b = append(binary.BigEndian.AppendUint16(b, pair[1]), 0, 0)
	}
	return append(b, 0, 0, 0, 0)
}

func withEXIF(t *testing.T, page image.Image, orientation int) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := jpeg.Encode(&b, page, nil); err != nil {
		t.Fatal(err)
	}
	exif := append([]byte("Exif\x00\x00"), tiffHeader(274, uint16(orientation))...)
	segment := append(binary.BigEndian.AppendUint16([]byte{0xff, 0xe1}, uint16(len(exif)+2)), exif...)
	return slices.Concat(b.Bytes()[:2], segment, b.Bytes()[2:])
}

func TestRead_OrdersBillsByTheOrientationOfAPhoto(t *testing.T) {
	reader := newReader(t, qrbill.Config{})
	page := sheet(t)
	for orientation := 1; orientation <= 8; orientation++ {
		result, err := read(reader, withEXIF(t, rotated(page, orientation), orientation), qrbill.Options{})
		if err != nil {
			t.Errorf("orientation %d: %v", orientation, err)
			continue
		}
		if result.Bill.IBAN != upperIBAN || len(result.Others) != 1 || result.Others[0].Bill.IBAN != lowerIBAN {
			t.Errorf("orientation %d: got %s first, then %+v", orientation, result.Bill.IBAN, result.Others)
		}
	}
}

func TestRead_OrdersBillsByTheOrientationOfATIFF(t *testing.T) {
	page := rotated(sheet(t), 3)
	w, h := page.Rect.Dx(), page.Rect.Dy()
	const entries = 9
	begin := uint16(8 + 2 + 12*entries + 4)
	file := tiffHeader(256, uint16(w), 257, uint16(h), 258, 8, 259, 1, 262, 1, 273, begin, 274, 3, 278, uint16(h), 279, 0)
	// The size of the only strip exceeds a short integer.
	last := file[8+2+12*(entries-1):]
	last[3] = 4
	binary.BigEndian.PutUint32(last[8:], uint32(len(page.Pix)))
	result, err := read(newReader(t, qrbill.Config{}), append(file, page.Pix...), qrbill.Options{})
	if err != nil || result.Bill.IBAN != upperIBAN {
		t.Errorf("got %+v, %v", result, err)
	}
}

// progressive returns the header of a progressive JPEG with colours at half the resolution.
func progressive(width, height uint16) []byte {
	b := []byte{0xff, 0xd8, 0xff, 0xc2, 0, 17, 8}
	b = binary.BigEndian.AppendUint16(b, height)
	b = binary.BigEndian.AppendUint16(b, width)
	return append(b, 3, 1, 0x22, 0, 2, 0x11, 0, 3, 0x11, 0, 0xff, 0xda, 0, 2)
}

func TestRead_LimitsProgressivePicturesByTheirMemory(t *testing.T) {
	reader := newReader(t, qrbill.Config{})
	for name, tc := range map[string]struct {
		file []byte
		want qrbill.Reason
	}{
		"a photo of 12 megapixels": {progressive(4000, 3000), qrbill.DamagedFile}, // it has no pixels
		"one of 48 megapixels":     {progressive(8000, 6000), qrbill.TooLarge},
		"the same in a TIFF":       {inTIFF(progressive(8000, 6000), 8000, 6000), qrbill.TooLarge},
	} {
		if _, err := read(reader, tc.file, qrbill.Options{}); qrbill.ReasonOf(err) != tc.want {
			t.Errorf("%s: got %v, want %s", name, err, tc.want)
		}
	}
}

// inTIFF returns a TIFF with a JPEG as its only strip.
func inTIFF(stream []byte, width, height uint16) []byte {
	const entries = 6
	begin := uint16(8 + 2 + 12*entries + 4)
	return append(tiffHeader(256, width, 257, height, 259, 7, 273, begin, 278, height, 279, uint16(len(stream))), stream...)
}

func TestRead_RejectsAnUnsupportedTIFF(t *testing.T) {
	const entries = 8
	begin := uint16(8 + 2 + 12*entries + 4)
	const cmyk = 5
	file := append(tiffHeader(256, 1, 257, 1, 258, 8, 259, 1, 262, cmyk, 273, begin, 277, 4, 279, 4), 0, 0, 0, 0)
	if _, err := read(newReader(t, qrbill.Config{}), file, qrbill.Options{}); qrbill.ReasonOf(err) != qrbill.UnsupportedFile {
		t.Errorf("got %v", err)
	}
}
