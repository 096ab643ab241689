package profile_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"image"
	"image/color"
	"image/jpeg"
	"image/png"
	"net/http"
	"slices"
	"strings"
	"testing"

	"kontor/modules/identity/profile"
	"kontor/server/access"
	"kontor/server/apierr"
	"kontor/server/servertest"
)

func TestAvatar_IsServedInTwoSizesUprightAndWithoutEXIF(t *testing.T) {
	s := servertest.Start(t)
	user := s.User(access.Customer)
	for orientation := 1; orientation <= 8; orientation++ {
		file := asJPEG(t, stored(upright(96), orientation))
		switch orientation % 3 {
		case 0:
			file = withEXIF(file, exif(binary.LittleEndian, orientation))
		case 1:
			file = withEXIF(file, exif(binary.BigEndian, orientation))
		case 2:
			file = withChunk(asPNG(t, stored(upright(96), orientation)), "eXIf", exif(binary.BigEndian, orientation))
		}
		t.Run(fmt.Sprint(orientation), func(t *testing.T) {
			for i, address := range addresses(t, upload(t, user, file)) {
				answer := s.Anonymous().Do("GET", address, nil).Expect(t, http.StatusOK)
				img, err := jpeg.Decode(strings.NewReader(answer.Body))
				if err != nil || strings.Contains(answer.Body, "Exif") || strings.Contains(answer.Body, "Geo") {
					t.Fatalf("%v, or it has EXIF", err)
				}
				expectQuarters(t, img, []int{512, 128}[i])
			}
		})
	}
}

func expectQuarters(t *testing.T, img image.Image, side int) {
	t.Helper()
	if img.Bounds() != image.Rect(0, 0, side, side) {
		t.Errorf("it is %v, want %d square", img.Bounds(), side)
	}
	for i, want := range quarters {
		got := color.NRGBAModel.Convert(img.At(side/4+i%2*side/2, side/4+i/2*side/2)).(color.NRGBA)
		if far(got.R, want.R) || far(got.G, want.G) || far(got.B, want.B) {
			t.Errorf("quarter %d is %v, want %v", i, got, want)
		}
	}
}

func far(a, b uint8) bool { return max(a, b)-min(a, b) > 12 }

func TestAvatar_KeepsTransparency(t *testing.T) {
	s := servertest.Start(t)
	img := upright(40)
	img.SetNRGBA(0, 0, color.NRGBA{})
	for i, address := range addresses(t, upload(t, s.User(access.Customer), asPNG(t, img))) {
		answer := s.Anonymous().Do("GET", address, nil).Expect(t, http.StatusOK)
		picture, err := png.Decode(strings.NewReader(answer.Body))
		if err != nil || !strings.HasSuffix(address, ".png") || answer.Header.Get("Content-Type") != "image/png" {
			t.Fatalf("%s: %v", address, err)
		}
		expectQuarters(t, picture, []int{512, 128}[i])
		if _, _, _, alpha := picture.At(0, 0).RGBA(); alpha > 0x1000 {
			t.Errorf("got alpha %x, want transparency", alpha)
		}
	}
}

func TestAvatar_AcceptsFilesOfCamerasAndPrograms(t *testing.T) {
	s := servertest.Start(t)
	user := s.User(access.Customer)
	jpg, pic := asJPEG(t, upright(64)), asPNG(t, upright(64))
	deep := image.NewNRGBA64(image.Rect(0, 0, 10, 30))
	palette := image.NewPaletted(image.Rect(0, 0, 9, 9), color.Palette{color.Black, color.White})
	for name, file := range map[string][]byte{
		"a jpeg": jpg, "a png": pic, "cmyk": sample(t, "cmyk.jpg"), "progressive": sample(t, "progressive.jpg"), "interlaced": sample(t, "interlaced.png"),
		"16 bits": asPNG(t, deep), "a palette": asPNG(t, palette), "grey": asJPEG(t, image.NewGray(image.Rect(0, 0, 7, 5))),
		"16 bits of grey": asPNG(t, image.NewGray16(image.Rect(0, 0, 7, 5))),
		"one pixel":       asPNG(t, upright(1)), "a line": asPNG(t, image.NewNRGBA(image.Rect(0, 0, 20_000, 1))),
		"an animated png":     withChunk(pic, "acTL", []byte{0, 0, 0, 1, 0, 0, 0, 0}),
		"padding behind":      append(slices.Clone(jpg), make([]byte, 1000)...),
		"line ends behind":    append(slices.Clone(pic), "\r\n\n"...),
		"a second picture":    slices.Concat(jpg, jpg),
		"a motion photo":      append(slices.Clone(jpg), "\x00\x00\x00\x20ftypmp42 and so on"...),
		"a telephone's notes": append(slices.Clone(jpg), "\x00\x00\x01\x0a Image_UTC_Data SEFH SEFT"...),
		"broken EXIF":         withEXIF(jpg, []byte("II*\x00\xff\xff\xff\xff")),
		"nonsense EXIF":       withEXIF(jpg, exif(binary.LittleEndian, 99)),
		"a comment of HTML":   withSegment(jpg, 0xfe, []byte("<script>alert(1)</script>")),
		"a text of HTML":      withChunk(pic, "tEXt", []byte("a\x00<script>alert(1)</script>")),
	} {
		t.Run(name, func(t *testing.T) {
			for _, address := range addresses(t, upload(t, user, file)) {
				if answer := s.Anonymous().Do("GET", address, nil).Expect(t, http.StatusOK); strings.Contains(answer.Body, "script") {
					t.Error("the uploaded file itself is served")
				}
			}
		})
	}
}

func FuzzRender(f *testing.F) {
	jpg := asJPEG(f, upright(8))
	f.Add(withEXIF(jpg, exif(binary.BigEndian, 6)))
	f.Add(withChunk(asPNG(f, upright(8)), "eXIf", exif(binary.LittleEndian, 3)))
	f.Add(sample(f, "cmyk.jpg"))
	f.Add(sample(f, "progressive.jpg"))
	f.Add(sample(f, "interlaced.png"))
	f.Add(append(jpg, "PK"...))
	s := profile.NewForRendering(10_000)
	f.Fuzz(func(t *testing.T, file []byte) {
		pictures, err := s.Render(file)
		if err != nil {
			if kind := apierr.Of(err).Kind; kind != apierr.InvalidFileType && kind != apierr.InvalidImage {
				t.Fatalf("got %v", err)
			}
			return
		}
		for i, side := range []int{512, 128} {
			if config, _, err := image.DecodeConfig(bytes.NewReader(pictures[i])); err != nil || config.Width != side || config.Height != side {
				t.Fatalf("picture %d is %d by %d: %v", i, config.Width, config.Height, err)
			}
		}
	})
}
