package generate

import (
	"strings"
	"unicode"
)

// initialisms are words that Go writes in capital letters.
var initialisms = map[string]string{
	"acr": "ACR", "amr": "AMR", "api": "API", "http": "HTTP", "iban": "IBAN", "id": "ID", "ids": "IDs", "ip": "IP", "json": "JSON",
	"jwks": "JWKS", "kyc": "KYC", "oidc": "OIDC", "openapi": "OpenAPI", "otp": "OTP", "qr": "QR", "rbac": "RBAC", "svg": "SVG",
	"totp": "TOTP", "uri": "URI", "url": "URL", "urls": "URLs", "uuid": "UUID",
}

// words splits a name of the API, such as user_id, userId or If-Match, into lower-case words.
func words(name string) []string {
	var found []string
	begin := true
	for i, r := range name {
		switch {
		case !unicode.IsLetter(r) && !unicode.IsDigit(r):
			begin = true
			continue
		case unicode.IsUpper(r) && i > 0 && unicode.IsLower(rune(name[i-1])):
			begin = true
		}
		if begin {
			found = append(found, "")
		}
		begin = false
		found[len(found)-1] += string(unicode.ToLower(r))
	}
	return found
}

// exported returns a name of the API as an exported name of Go.
func exported(name string) string {
	var b strings.Builder
	for _, word := range words(name) {
		if capitals, ok := initialisms[word]; ok {
			b.WriteString(capitals)
			continue
		}
		b.WriteString(strings.ToUpper(word[:1]) + word[1:])
	}
	return b.String()
}

// camel returns a name of the API in camel case that begins with a small letter, as in TypeScript.
func camel(name string) string {
	parts := words(name)
	for i := 1; i < len(parts); i++ {
		parts[i] = strings.ToUpper(parts[i][:1]) + parts[i][1:]
	}
	return strings.Join(parts, "")
}

// goParameter returns a name of the API as a parameter of a Go function.
func goParameter(name string) string {
	parts := words(name)
	first := parts[0]
	rest := exported(strings.Join(parts[1:], "_"))
	if first == "type" || first == "range" || first == "func" {
		first += "Of"
	}
	return first + rest
}

// wrap breaks a text into lines of at most width characters. Line breaks of the text stay.
func wrap(text string, width int) []string {
	var lines []string
	for paragraph := range strings.SplitSeq(strings.TrimSpace(text), "\n") {
		line := ""
		for word := range strings.FieldsSeq(paragraph) {
			if line != "" && len(line)+1+len(word) > width {
				lines = append(lines, line)
				line = ""
			}
			if line != "" {
				line += " "
			}
			line += word
		}
		lines = append(lines, line)
	}
	return lines
}

// lowerFirst starts a sentence with a small letter, unless its first word is an abbreviation.
func lowerFirst(s string) string {
	if len(s) > 1 && unicode.IsLower(rune(s[1])) || strings.HasPrefix(s, "A ") {
		return strings.ToLower(s[:1]) + s[1:]
	}
	return s
}
