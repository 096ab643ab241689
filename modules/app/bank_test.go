package app

import (
	"bytes"
	"image"
	"image/png"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"kontor/server/settings"
)

func picture(t *testing.T, width, height int) string {
	var file bytes.Buffer
	if err := png.Encode(&file, image.NewGray(image.Rect(0, 0, width, height))); err != nil {
		t.Fatal(err)
	}
	return file.String()
}

func TestBankOf_RejectsLogosThatAreNoHarmlessPictures(t *testing.T) {
	path := filepath.Join(t.TempDir(), "logo")
	read := func(logo string) (string, error) {
		if err := os.WriteFile(path, []byte(logo), 0o600); err != nil {
			t.Fatal(err)
		}
		bank, err := bankOf(settings.Bank{Logo: path})
		return bank.LogoName, err
	}
	svg := func(inside string) string {
		return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32">` + inside + `</svg>`
	}
	for logo, want := range map[string]string{
		picture(t, 64, 40): "style/logo.png",
		svg(`<path d="M0 0h9"/><use href="#a"/><style>path { fill: red }</style>`): "style/logo.svg",
		`<?xml version="1.0"?><!-- ours -->` + svg(""):                             "style/logo.svg",
	} {
		if name, err := read(logo); name != want || err != nil {
			t.Errorf("%.60q: got %q, %v", logo, name, err)
		}
	}
	for _, logo := range []string{
		"", "GIF89a", "<html></html>", "\xff\xd8\xff\xe0", "\x89PNG\r\n\x1a\nno", picture(t, 16, 64), picture(t, 64, 2049),
		svg("<script>alert(1)</script>"), svg("<SCRIPT/>"), svg(`<x:script xmlns:x="http://www.w3.org/2000/svg"/>`), svg("<foreignObject/>"),
		svg(`<path onload="alert(1)"/>`), svg(`<path ONCLICK="x"/>`), svg(`<image href="https://evil.example/x.png"/>`),
		svg(`<a xlink:href="javascript:alert(1)"/>`), svg(`<animate attributeName="href" to="javascript:x"/>`),
		`<!DOCTYPE svg [<!ENTITY a "aaaa">]>` + svg("&a;"), svg("<path>"), svg("<!-- " + strings.Repeat("x", maxLogo) + " -->"),
	} {
		if name, err := read(logo); err == nil {
			t.Errorf("%.60q: accepted as %q", logo, name)
		}
	}
	if _, err := bankOf(settings.Bank{Logo: filepath.Join(t.TempDir(), "none")}); err == nil {
		t.Error("accepted a missing file")
	}
}

func TestIssuer_IsTheBankUnlessItIsSet(t *testing.T) {
	var s settings.Settings
	for _, c := range []struct{ issuer, bank, want string }{
		{"Kontor", "", "Kontor"}, {"Kontor", "Bank: See", "Bank See"}, {"Other", "Bank am See", "Other"},
	} {
		s.Auth.MFA.Issuer, s.Bank.Name = c.issuer, c.bank
		if got := issuer(s); got != c.want {
			t.Errorf("%+v: got %q", c, got)
		}
	}
}
