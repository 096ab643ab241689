package profile_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"image"
	"image/color"
	"image/jpeg"
	"image/png"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"kontor/modules/profile"
	"kontor/server/access"
	"kontor/server/fault"
	"kontor/server/servertest"
	"kontor/server/settings"
)

// addresses are where the pictures are after an upload.
func addresses(t *testing.T, answer servertest.Response) []string {
	t.Helper()
	got := answer.Expect(t, http.StatusOK).JSON(t)
	return []string{got["url"].(string), got["thumbnail_url"].(string)}
}

func TestAvatar_IsServedInTwoSizesUprightAndWithoutEXIF(t *testing.T) {
	s := servertest.Start(t)
	user := s.User(access.Customer)
	for orientation := 1; orientation <= 8; orientation++ {
		for name, file := range map[string][]byte{
			"intel": withEXIF(asJPEG(t, stored(upright(96), orientation)), exif(binary.LittleEndian, orientation)),
			"other": withEXIF(asJPEG(t, stored(upright(96), orientation)), exif(binary.BigEndian, orientation)),
			"png":   withChunk(asPNG(t, stored(upright(96), orientation)), "eXIf", exif(binary.BigEndian, orientation)),
		} {
			t.Run(fmt.Sprint(orientation, name), func(t *testing.T) {
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

func TestAvatar_IsServedSafelyAndForLong(t *testing.T) {
	s := servertest.Start(t)
	address := addresses(t, upload(t, s.User(access.Customer), asPNG(t, upright(20))))[0]
	if !strings.HasPrefix(address, "/v1/avatars/") || len(address) < len("/v1/avatars/")+26+len(".jpg") {
		t.Errorf("the address is %s", address)
	}
	answer := s.Anonymous().Do("GET", address, nil).Expect(t, http.StatusOK)
	for header, want := range map[string]string{"Content-Type": "image/jpeg", "Cache-Control": "private, max-age=31536000, immutable",
		"Content-Security-Policy": "default-src 'none'; sandbox", "X-Content-Type-Options": "nosniff",
		"Content-Disposition": `inline; filename="avatar.jpg"`} {
		if got := answer.Header.Get(header); got != want {
			t.Errorf("%s is %q, want %q", header, got, want)
		}
	}
	etag := answer.Header.Get("ETag")
	if again := s.Anonymous().With("If-None-Match", etag).Do("GET", address, nil); etag == "" || again.Status != http.StatusNotModified || again.Body != "" {
		t.Errorf("with %s: got %d with %d bytes, want 304", etag, again.Status, len(again.Body))
	}
	if head := s.Anonymous().Do("HEAD", address, nil); head.Status != http.StatusOK || head.Header.Get("Content-Length") != fmt.Sprint(len(answer.Body)) {
		t.Errorf("HEAD: got %d %v", head.Status, head.Header)
	}
	for _, wrong := range []string{strings.TrimSuffix(address, ".jpg"), strings.Replace(address, ".jpg", ".png", 1), "/v1/avatars/.jpg",
		"/v1/avatars/" + strings.Repeat("A", 26) + ".jpg", strings.ToLower(address)} {
		missing := s.Anonymous().With("If-None-Match", etag).Do("GET", wrong, nil)
		if missing.Status != 404 || missing.JSON(t)["code"] != "profile.avatar_not_found" || missing.Header.Get("Cache-Control") != "no-store" {
			t.Errorf("%s: got %d %s", wrong, missing.Status, missing.Body)
		}
	}
}

func TestAvatar_KeepsWhatShinesThrough(t *testing.T) {
	s := servertest.Start(t)
	img := upright(40)
	img.SetNRGBA(0, 0, color.NRGBA{})
	for i, address := range addresses(t, upload(t, s.User(access.Customer), asPNG(t, img))) {
		answer := s.Anonymous().Do("GET", address, nil).Expect(t, http.StatusOK)
		shown, err := png.Decode(strings.NewReader(answer.Body))
		if err != nil || !strings.HasSuffix(address, ".png") || answer.Header.Get("Content-Type") != "image/png" {
			t.Fatalf("%s: %v", address, err)
		}
		expectQuarters(t, shown, []int{512, 128}[i])
		if _, _, _, alpha := shown.At(0, 0).RGBA(); alpha > 0x1000 {
			t.Errorf("nothing shines through: %x", alpha)
		}
	}
}

func TestAvatar_TakesWhatCamerasAndProgramsWrite(t *testing.T) {
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
					t.Error("the upload itself is served")
				}
			}
		})
	}
}

func TestAvatar_RefusesWhatIsNoPicture(t *testing.T) {
	s := servertest.Start(t, func(s *settings.Settings) { s.Profile.AvatarMaxPixels = 1_000_000 })
	user := s.User(access.Customer)
	jpg, pic := asJPEG(t, upright(64)), asPNG(t, upright(64))
	huge := slices.Clone(jpg)
	at := bytes.Index(huge, []byte{0xff, 0xc0})
	copy(huge[at+5:], []byte{0xff, 0xff, 0xff, 0xff})
	type file struct {
		content []byte
		code    string
		says    string
	}
	for name, c := range map[string]file{
		"a gif":                  {[]byte("GIF89a\x01\x00\x01\x00\x00\x00\x00;"), "profile.invalid_file_type", "jpg and png"},
		"a webp":                 {[]byte("RIFF\x24\x00\x00\x00WEBPVP8 "), "profile.invalid_file_type", "jpg and png"},
		"an svg":                 {[]byte(`<svg xmlns="http://www.w3.org/2000/svg"/>`), "profile.invalid_file_type", "jpg and png"},
		"a pdf":                  {[]byte("%PDF-1.7\n"), "profile.invalid_file_type", "jpg and png"},
		"a text":                 {[]byte("hello"), "profile.invalid_file_type", "jpg and png"},
		"a tiff":                 {[]byte("II*\x00\x08\x00\x00\x00"), "profile.invalid_file_type", "jpg and png"},
		"a gif before a jpeg":    {append([]byte("GIF89a"), jpg...), "profile.invalid_file_type", "jpg and png"},
		"white space before":     {append([]byte("\n"), pic...), "profile.invalid_file_type", "jpg and png"},
		"only a start":           {jpg[:3], "profile.invalid_image", "damaged"},
		"a cut jpeg":             {jpg[:len(jpg)/2], "profile.invalid_image", "damaged"},
		"a cut png":              {pic[:len(pic)-20], "profile.invalid_image", "damaged"},
		"a bad checksum":         {claimed(pic, 64, 64)[:60], "profile.invalid_image", "damaged"},
		"no pixels":              {claimed(pic, 0, 0), "profile.invalid_image", "damaged"},
		"too many pixels":        {claimed(pic, 1001, 1000), "profile.invalid_image", "1000000"},
		"a bomb":                 {claimed(pic, 1<<31-1, 1<<31-1), "profile.invalid_image", ""},
		"a huge jpeg":            {huge, "profile.invalid_image", "1000000"},
		"fewer pixels than told": {claimed(pic, 900, 900), "profile.invalid_image", "damaged"},
		"a page behind":          {append(slices.Clone(pic), "<html><script>alert(1)</script>"...), "profile.invalid_image", "more than"},
		"an archive behind":      {append(slices.Clone(jpg), "PK\x03\x04 and so on"...), "profile.invalid_image", "more than"},
		"code behind":            {append(slices.Clone(jpg), "\x00\x00<?php system($_GET[0]);"...), "profile.invalid_image", "more than"},
		"a jpeg behind a png":    {slices.Concat(pic, jpg), "profile.invalid_image", "more than"},
	} {
		t.Run(name, func(t *testing.T) {
			answer := upload(t, user, c.content)
			if answer.Status != 400 || answer.JSON(t)["code"] != c.code || !strings.Contains(answer.Body, c.says) {
				t.Errorf("got %d %s, want 400 %s", answer.Status, answer.Body, c.code)
			}
		})
	}
	if got := user.Do("GET", "/v1/profile", nil); !strings.Contains(got.Body, `"avatar":null`) {
		t.Errorf("a refused file left %s", got.Body)
	}
	if answer := upload(t, user.With("Accept-Language", "de"), []byte("GIF89a")); !strings.Contains(answer.Body, "jpg und png") {
		t.Errorf("in German: %s", answer.Body)
	}
}

func TestAvatar_RefusesWhatIsNoForm(t *testing.T) {
	const limit = 100_000
	s := servertest.Start(t, func(s *settings.Settings) { s.Profile.AvatarMaxBytes = limit })
	user := s.User(access.Customer)
	pic := string(asPNG(t, upright(64)))
	send := func(contentType string, body []byte) servertest.Response {
		return user.With("Content-Type", contentType).Do("POST", "/v1/profile/avatar", body)
	}
	good, whole := form(t, "file", pic)
	for name, c := range map[string]struct {
		parts  []string
		status int
	}{
		"no file":            {nil, 400},
		"another name":       {[]string{"picture", pic}, 400},
		"an empty file":      {[]string{"file", ""}, 400},
		"two files":          {[]string{"file", pic, "file", pic}, 400},
		"many members":       {slices.Repeat([]string{"x", "y"}, 20), 400},
		"a file of the most": {[]string{"x", "y", "file", pic + strings.Repeat("\x00", limit-len(pic))}, 200},
		"one byte more":      {[]string{"file", pic + strings.Repeat("\x00", limit-len(pic)+1)}, 413},
		"far too much":       {[]string{"file", strings.Repeat("\x00", 2*limit)}, 413},
	} {
		t.Run(name, func(t *testing.T) {
			contentType, body := form(t, c.parts...)
			answer := send(contentType, body)
			if answer.Status != c.status || c.status == 400 && !strings.Contains(answer.Body, `"details":{"file":`) {
				t.Errorf("got %d %s, want %d", answer.Status, answer.Body, c.status)
			}
		})
	}
	for name, c := range map[string]struct {
		contentType string
		body        []byte
		status      int
	}{
		"json":              {"application/json", []byte(`{"file":"x"}`), 415},
		"the picture alone": {"image/png", []byte(pic), 415},
		"no boundary":       {"multipart/form-data", whole, 400},
		"another boundary":  {"multipart/form-data; boundary=x", whole, 400},
		"a cut form":        {good, whole[:len(whole)-30], 400},
		"nothing":           {good, nil, 400},
	} {
		t.Run(name, func(t *testing.T) {
			if answer := send(c.contentType, c.body); answer.Status != c.status {
				t.Errorf("got %d %s, want %d", answer.Status, answer.Body, c.status)
			}
		})
	}
}

// count tells how many pictures are stored.
func count(t *testing.T, s *servertest.Server) (n int) {
	t.Helper()
	if err := s.DB.QueryRow(context.Background(), "SELECT COUNT(*) FROM avatars").Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

func TestAvatar_LeavesNothingBehind(t *testing.T) {
	s := servertest.Start(t)
	user, other := s.User(access.Customer), s.User(access.Advisor)
	pic := asPNG(t, upright(20))
	kept := addresses(t, upload(t, other, pic))
	first := addresses(t, upload(t, user, pic))
	second := addresses(t, upload(t, user, pic))
	if slices.Equal(first, second) || count(t, s) != 4 {
		t.Errorf("%v after %v, %d pictures", second, first, count(t, s))
	}
	for _, old := range first {
		s.Anonymous().Do("GET", old, nil).Expect(t, http.StatusNotFound)
	}
	profile := user.Do("GET", "/v1/profile", nil).Expect(t, http.StatusOK)
	if !strings.Contains(profile.Body, fmt.Sprintf(`"avatar":{"url":%q,"thumbnail_url":%q}`, second[0], second[1])) {
		t.Errorf("the profile is %s, want %v", profile.Body, second)
	}
	user.With("If-None-Match", profile.Header.Get("ETag")).Do("GET", "/v1/profile", nil).Expect(t, http.StatusNotModified)
	if removed := user.With("Accept-Language", "fr").Do("DELETE", "/v1/profile/avatar", nil).Expect(t, http.StatusOK); removed.Body != `{"message":"L'image est supprimée."}` {
		t.Errorf("got %s", removed.Body)
	}
	s.Anonymous().Do("GET", second[0], nil).Expect(t, http.StatusNotFound)
	s.Anonymous().Do("GET", kept[0], nil).Expect(t, http.StatusOK)
	if answer := user.Do("DELETE", "/v1/profile/avatar", nil); answer.Status != 404 || answer.JSON(t)["code"] != "profile.avatar_not_found" {
		t.Errorf("once more: got %d %s", answer.Status, answer.Body)
	}
	trail := s.Admin().Do("GET", "/v1/audit?search.rec_id="+user.UserID+"&search.rec_type=profiles", nil).JSON(t)
	if trail["total"] != 3.0 {
		t.Errorf("the audit trail has %v entries, want 3", trail["total"])
	}
}

func TestAvatar_IsOneAfterParallelUploads(t *testing.T) {
	s := servertest.Start(t)
	user := s.User(access.Customer)
	pic := asPNG(t, upright(20))
	var wait sync.WaitGroup
	for range 8 {
		wait.Go(func() { upload(t, user, pic) })
	}
	wait.Wait()
	got := user.Do("GET", "/v1/profile", nil).Expect(t, http.StatusOK).JSON(t)["avatar"].(map[string]any)
	s.Anonymous().Do("GET", got["url"].(string), nil).Expect(t, http.StatusOK)
	s.Anonymous().Do("GET", got["thumbnail_url"].(string), nil).Expect(t, http.StatusOK)
	if count(t, s) != 2 {
		t.Errorf("%d pictures are stored, want 2", count(t, s))
	}
}

func TestSlots_KeepAFloodOut(t *testing.T) {
	const pixels = 1000
	s := profile.NewForDrawing(pixels)
	leave, err := s.Enter(t.Context(), pixels)
	if err != nil {
		t.Fatal(err)
	}
	patient, cancel := context.WithCancel(t.Context())
	var wait sync.WaitGroup
	refused := make(chan error, 40)
	for range cap(refused) {
		wait.Go(func() {
			_, err := s.Enter(patient, 1)
			refused <- err
		})
	}
	for range cap(refused) - 16 {
		if err := <-refused; fault.Of(err).Kind != fault.Unavailable || fault.Of(err).Retry == 0 {
			t.Errorf("got %v, want to be told to come again", err)
		}
	}
	cancel() // those who wait give up
	wait.Wait()
	leave()
	if leave, err = s.Enter(t.Context(), 5*pixels); err != nil {
		t.Fatalf("after the flood: %v", err)
	}
	leave()
}

func FuzzDraw(f *testing.F) {
	jpg := asJPEG(f, upright(8))
	f.Add(withEXIF(jpg, exif(binary.BigEndian, 6)))
	f.Add(withChunk(asPNG(f, upright(8)), "eXIf", exif(binary.LittleEndian, 3)))
	f.Add(sample(f, "cmyk.jpg"))
	f.Add(sample(f, "progressive.jpg"))
	f.Add(sample(f, "interlaced.png"))
	f.Add(append(jpg, "PK"...))
	s := profile.NewForDrawing(10_000)
	f.Fuzz(func(t *testing.T, file []byte) {
		pictures, err := s.Draw(file)
		if err != nil {
			if kind := fault.Of(err).Kind; kind != fault.InvalidFileType && kind != fault.InvalidImage {
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

func FuzzFilePart(f *testing.F) {
	contentType, body := form(f, "x", "y", "file", "content")
	f.Add(contentType, body)
	f.Add("multipart/form-data; boundary=\"\"", body)
	f.Add("multipart/form-data; boundary=a", []byte("--a\r\nContent-Disposition: form-data; name=file\r\nContent-Transfer-Encoding: quoted-printable\r\n\r\n=\r\n--a--"))
	f.Fuzz(func(t *testing.T, contentType string, body []byte) {
		const limit = 64
		file, err := profile.FilePart(contentType, body, limit)
		if err == nil && (len(file) == 0 || len(file) > limit) {
			t.Fatalf("%d bytes came through", len(file))
		}
		if err != nil && fault.Of(err).Status >= 500 {
			t.Fatalf("got %v", err)
		}
	})
}
