package files_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"image"
	"image/color"
	"image/jpeg"
	"image/png"
	"math/rand/v2"
	"strings"
	"testing"
)

// pdfOf returns a PDF with pages of a size in points, each with a line of text, and padding in an unused stream.
func pdfOf(pages, width, height, padding int) []byte {
	var b bytes.Buffer
	var offsets []int
	object := func(text string) {
		offsets = append(offsets, b.Len())
		fmt.Fprintf(&b, "%d 0 obj\n%s\nendobj\n", len(offsets), text)
	}
	b.WriteString("%PDF-1.4\n%\xe2\xe3\xcf\xd3\n")
	kids := make([]string, pages)
	for i := range kids {
		kids[i] = fmt.Sprintf("%d 0 R", 5+i)
	}
	object("<< /Type /Catalog /Pages 2 0 R >>")
	object(fmt.Sprintf("<< /Type /Pages /Kids [%s] /Count %d >>", strings.Join(kids, " "), pages))
	text := "BT /F1 24 Tf 40 60 Td (Evidence) Tj ET 1 0 0 rg 10 10 20 20 re f"
	object(fmt.Sprintf("<< /Length %d >>\nstream\n%s\nendstream", len(text), text))
	object("<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>")
	for range pages {
		object(fmt.Sprintf("<< /Type /Page /Parent 2 0 R /MediaBox [0 0 %d %d] /Contents 3 0 R /Resources << /Font << /F1 4 0 R >> >> >>", width, height))
	}
	object(fmt.Sprintf("<< /Length %d >>\nstream\n%s\nendstream", padding, noise(padding)))
	start := b.Len()
	fmt.Fprintf(&b, "xref\n0 %d\n0000000000 65535 f \n", len(offsets)+1)
	for _, at := range offsets {
		fmt.Fprintf(&b, "%010d 00000 n \n", at)
	}
	fmt.Fprintf(&b, "trailer\n<< /Size %d /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF\n", len(offsets)+1, start)
	return b.Bytes()
}

// noise returns bytes that do not compress and contain no marker of a format.
func noise(n int) []byte {
	random := rand.New(rand.NewPCG(1, 2))
	b := make([]byte, n)
	for i := range b {
		b[i] = byte('a' + random.IntN(26))
	}
	return b
}

// picture returns a picture whose left half is red and right half is blue.
func picture(width, height int) *image.RGBA {
	img := image.NewRGBA(image.Rect(0, 0, width, height))
	for y := range height {
		for x := range width {
			c := color.RGBA{200, 0, 0, 255}
			if x >= width/2 {
				c = color.RGBA{0, 0, 200, 255}
			}
			img.Set(x, y, c)
		}
	}
	return img
}

func jpegOf(t testing.TB, width, height int) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := jpeg.Encode(&b, picture(width, height), nil); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func pngOf(t testing.TB, width, height int) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := png.Encode(&b, picture(width, height)); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// gpsMark is what the EXIF data of a photo say about its place.
const gpsMark = "GPS 46.948N 7.447E"

// photo returns a JPEG that a camera has stored on its side (orientation 6), with its place in the EXIF data.
func photo(t testing.TB, width, height int) []byte {
	t.Helper()
	plain := jpegOf(t, width, height)
	tiff := []byte("MM\x00*\x00\x00\x00\x08" + "\x00\x01" + "\x01\x12\x00\x03\x00\x00\x00\x01\x00\x06\x00\x00" + "\x00\x00\x00\x00" + gpsMark)
	segment := append([]byte("Exif\x00\x00"), tiff...)
	head := binary.BigEndian.AppendUint16([]byte{0xff, 0xd8, 0xff, 0xe1}, uint16(len(segment)+2))
	return append(append(head, segment...), plain[2:]...)
}

// pngHeader returns the beginning of a PNG of a size, with an empty picture: a bomb for decoders that trust it.
func pngHeader(width, height uint32) []byte {
	b := []byte("\x89PNG\r\n\x1a\n\x00\x00\x00\x0dIHDR")
	b = binary.BigEndian.AppendUint32(b, width)
	b = binary.BigEndian.AppendUint32(b, height)
	b = append(b, 8, 2, 0, 0, 0, 0, 0, 0, 0)
	b = append(b, "\x00\x00\x00\x00IDAT\x00\x00\x00\x00"...)
	return append(b, "\x00\x00\x00\x00IEND\xae\x42\x60\x82"...)
}
