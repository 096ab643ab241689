package app

import (
	"bytes"
	"cmp"
	"encoding/xml"
	"errors"
	"fmt"
	"image/png"
	"io"
	"os"
	"slices"
	"strings"

	"kontor/server/settings"
	"kontor/web"
)

const (
	maxLogo     = 200_000 // bytes
	maxLogoSide = 2048    // pixels
	minLogoSide = 32
)

// issuer returns the name that authenticator apps and passkeys show: that of the bank, unless auth.mfa.issuer has another.
func issuer(s settings.Settings) string {
	const standard = "Kontor" // the default of auth.mfa.issuer
	if s.Auth.MFA.Issuer != standard {
		return s.Auth.MFA.Issuer
	}
	return cmp.Or(strings.ReplaceAll(s.Bank.Name, ":", ""), standard)
}

// bankOf returns what the console shows of the bank. It reads the logo.
func bankOf(b settings.Bank) (web.Bank, error) {
	bank := web.Bank{Name: b.Name, Color: b.Color, TermsURL: b.TermsURL, PrivacyURL: b.PrivacyURL}
	if b.Logo == "" {
		return bank, nil
	}
	logo, err := readLogo(b.Logo)
	if err != nil {
		return bank, fmt.Errorf("bank.logo: %w", err)
	}
	bank.Logo, bank.LogoName = logo, "style/logo.svg"
	if bytes.HasPrefix(logo, []byte("\x89PNG")) {
		bank.LogoName = "style/logo.png"
		err = checkPNG(logo)
	} else {
		err = checkSVG(logo)
	}
	if err != nil {
		return bank, fmt.Errorf("bank.logo %s: %w", b.Logo, err)
	}
	return bank, nil
}

func readLogo(path string) ([]byte, error) {
	file, err := os.Open(path) //nolint:gosec // G304: the operator names the file
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }() // It was only read.
	logo, err := io.ReadAll(io.LimitReader(file, maxLogo+1))
	if err == nil && len(logo) > maxLogo {
		err = fmt.Errorf("%s has more than %d bytes", path, maxLogo)
	}
	return logo, err
}

func checkPNG(logo []byte) error {
	picture, err := png.DecodeConfig(bytes.NewReader(logo))
	if err != nil {
		return fmt.Errorf("is no valid PNG file: %w", err)
	}
	if s, l := min(picture.Width, picture.Height), max(picture.Width, picture.Height); s < minLogoSide || l > maxLogoSide {
		return fmt.Errorf("must have %d to %d pixels on each side", minLogoSide, maxLogoSide)
	}
	return nil
}

// activeElements can run scripts, show other documents or change the picture.
var activeElements = []string{"script", "foreignobject", "iframe", "object", "embed", "audio", "video", "handler", "set"}

// checkSVG rejects files that are no SVG, and those that run scripts or load anything. The server also sends the logo with a content
// security policy that forbids both.
func checkSVG(logo []byte) error {
	decoder := xml.NewDecoder(bytes.NewReader(logo))
	for first := true; ; {
		token, err := decoder.Token()
		if errors.Is(err, io.EOF) && !first {
			return nil
		}
		if err != nil {
			return errors.New("is neither an SVG nor a PNG file")
		}
		switch node := token.(type) {
		case xml.Directive:
			return errors.New("must not have a document type")
		case xml.StartElement:
			if first && node.Name.Local != "svg" {
				return errors.New("is neither an SVG nor a PNG file")
			}
			first = false
			if err := checkElement(node); err != nil {
				return err
			}
		}
	}
}

func checkElement(node xml.StartElement) error {
	name := strings.ToLower(node.Name.Local)
	if slices.Contains(activeElements, name) || strings.HasPrefix(name, "animate") {
		return fmt.Errorf("must not contain <%s>", node.Name.Local)
	}
	for _, a := range node.Attr {
		attribute := strings.ToLower(a.Name.Local)
		inside := strings.HasPrefix(a.Value, "#") || strings.HasPrefix(a.Value, "data:image/")
		if strings.HasPrefix(attribute, "on") || attribute == "href" && !inside {
			return fmt.Errorf("must not have the attribute %s=%q", a.Name.Local, a.Value)
		}
	}
	return nil
}
