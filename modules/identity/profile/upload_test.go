package profile_test

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"kontor/modules/identity/profile"
	"kontor/server/access"
	"kontor/server/apierr"
	"kontor/server/servertest"
	"kontor/server/settings"
)

func TestAvatar_RejectsFilesThatAreNotPictures(t *testing.T) {
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
		t.Errorf("a rejected file left %s", got.Body)
	}
	if answer := upload(t, user.With("Accept-Language", "de"), []byte("GIF89a")); !strings.Contains(answer.Body, "jpg und png") {
		t.Errorf("in German: %s", answer.Body)
	}
}

func TestAvatar_RejectsBodiesThatAreNotForms(t *testing.T) {
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

func FuzzFilePart(f *testing.F) {
	contentType, body := form(f, "x", "y", "file", "content")
	f.Add(contentType, body)
	f.Add("multipart/form-data; boundary=\"\"", body)
	f.Add("multipart/form-data; boundary=a", []byte("--a\r\nContent-Disposition: form-data; name=file\r\nContent-Transfer-Encoding: quoted-printable\r\n\r\n=\r\n--a--"))
	f.Fuzz(func(t *testing.T, contentType string, body []byte) {
		const limit = 64
		file, err := profile.FilePart(contentType, body, limit)
		if err == nil && (len(file) == 0 || len(file) > limit) {
			t.Fatalf("accepted %d bytes", len(file))
		}
		if err != nil && apierr.Of(err).Status >= 500 {
			t.Fatalf("got %v", err)
		}
	})
}
