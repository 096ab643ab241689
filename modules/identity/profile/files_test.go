package profile_test

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"image"
	"image/color"
	"image/jpeg"
	"image/png"
	"mime/multipart"
	"os"
	"slices"
	"testing"

	"kontor/server/servertest"
)

// colours of the quarters of the test picture: top left, top right, bottom left, bottom right.
var quarters = [4]color.NRGBA{{200, 30, 30, 255}, {30, 160, 30, 255}, {30, 30, 200, 255}, {230, 230, 40, 255}}

// upright returns a square picture with a colour in each quarter.
func upright(side int) *image.NRGBA {
	img := image.NewNRGBA(image.Rect(0, 0, side, side))
	for y := range side {
		for x := range side {
			img.SetNRGBA(x, y, quarters[2*(2*y/side)+2*x/side])
		}
	}
	return img
}

// sides are the sides of the first row and first column of a stored picture, by orientation (CIPA DC-008, table 3).
var sides = map[int][2]string{1: {"top", "left"}, 2: {"top", "right"}, 3: {"bottom", "right"}, 4: {"bottom", "left"},
	5: {"left", "top"}, 6: {"right", "top"}, 7: {"right", "bottom"}, 8: {"left", "bottom"}}

// stored returns a picture as a camera would store it with an orientation.
func stored(img *image.NRGBA, orientation int) *image.NRGBA {
	side := img.Bounds().Dx()
	turned := image.NewNRGBA(img.Bounds())
	for y := range side {
		for x := range side {
			place := map[string]int{}
			for i, at := range []int{y, x} {
				switch sides[orientation][i] {
				case "top", "left":
					place[map[string]string{"top": "y", "left": "x"}[sides[orientation][i]]] = at
				case "bottom", "right":
					place[map[string]string{"bottom": "y", "right": "x"}[sides[orientation][i]]] = side - 1 - at
				}
			}
			turned.SetNRGBA(x, y, img.NRGBAAt(place["x"], place["y"]))
		}
	}
	return turned
}

func asJPEG(t testing.TB, img image.Image) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := jpeg.Encode(&b, img, &jpeg.Options{Quality: 95}); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func asPNG(t testing.TB, img image.Image) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := png.Encode(&b, img); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// sample reads a file of testdata.
func sample(t testing.TB, name string) []byte {
	t.Helper()
	data, err := os.ReadFile("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

type byteOrder interface {
	binary.ByteOrder
	binary.AppendByteOrder
}

// exif returns EXIF data with a maker's name and an orientation.
func exif(order byteOrder, orientation int) []byte {
	start := "II*\x00"
	if order == byteOrder(binary.BigEndian) {
		start = "MM\x00*"
	}
	b := order.AppendUint16(order.AppendUint32([]byte(start), 8), 2)
	b = order.AppendUint16(order.AppendUint16(b, 0x010f), 2)
	b = append(order.AppendUint32(b, 4), "Geo\x00"...)
	b = order.AppendUint16(order.AppendUint16(b, 0x0112), 3)
	b = order.AppendUint16(order.AppendUint32(b, 1), uint16(orientation))
	return append(b, 0, 0, 0, 0, 0, 0)
}

// withSegment inserts a segment after the start of a JPEG.
func withSegment(file []byte, marker byte, body []byte) []byte {
	segment := append([]byte{0xff, marker, byte((len(body) + 2) >> 8), byte(len(body) + 2)}, body...)
	return slices.Concat(file[:2], segment, file[2:])
}

func withEXIF(file, data []byte) []byte {
	return withSegment(file, 0xe1, append([]byte("Exif\x00\x00"), data...))
}

// withChunk inserts a chunk after the header of a PNG.
func withChunk(file []byte, kind string, body []byte) []byte {
	const header = 8 + 25
	chunk := binary.BigEndian.AppendUint32(nil, uint32(len(body)))
	chunk = append(append(chunk, kind...), body...)
	chunk = binary.BigEndian.AppendUint32(chunk, crc32.ChecksumIEEE(chunk[4:]))
	return slices.Concat(file[:header], chunk, file[header:])
}

// claimed returns a PNG whose header states another size.
func claimed(file []byte, width, height uint32) []byte {
	file = slices.Clone(file)
	binary.BigEndian.PutUint32(file[16:], width)
	binary.BigEndian.PutUint32(file[20:], height)
	binary.BigEndian.PutUint32(file[29:], crc32.ChecksumIEEE(file[12:29]))
	return file
}

// form returns a multipart body with files, in pairs of member and content.
func form(t testing.TB, parts ...string) (contentType string, body []byte) {
	t.Helper()
	var b bytes.Buffer
	w := multipart.NewWriter(&b)
	for i := 0; i < len(parts); i += 2 {
		part, err := w.CreateFormFile(parts[i], "../../etc/passwd.png")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := part.Write([]byte(parts[i+1])); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return w.FormDataContentType(), b.Bytes()
}

// upload uploads a file as the picture of a user.
func upload(t testing.TB, c *servertest.Client, file []byte) servertest.Response {
	t.Helper()
	contentType, body := form(t, "file", string(file))
	return c.With("Content-Type", contentType).Do("POST", "/v1/profile/avatar", body)
}
