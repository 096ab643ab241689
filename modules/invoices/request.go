package invoices

import (
	"bytes"
	"encoding/base64"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// ReadInput is the body of a request to read a bill.
type ReadInput struct {
	File    File    `json:"base64_file" required:"true" example:"JVBERi0xLjcKJeLjz9MK" doc:"The file in base64: PDF, PNG, JPEG, WebP, TIFF, GIF, BMP. A data URL is taken, too."`
	Options Options `json:"options"`
}

// File is the invoice in base64, where it stands in the body of the request: it may be large, and a copy of it would be
// memory that nobody counts. A value of another type counts as an empty file, because the specification wants one code
// for everything that is wrong with this request.
type File struct{ value jsontext.Value }

// SetInPlace keeps the value, whatever it is.
func (f *File) SetInPlace(value jsontext.Value) { f.value = value }

// JSONString says that the form in JSON is a string.
func (File) JSONString() (format string, orNull bool) { return "", false }

// decode returns the file. It overwrites the text with it, so that it works only once.
func (f File) decode() ([]byte, bool) {
	if f.value.Kind() != '"' {
		return nil, true
	}
	text, ok := unquote(f.value)
	if !ok {
		return nil, false
	}
	return decodeFile(text)
}

// Options say what is wanted of the file.
type Options struct {
	Page           int  `json:"page" minimum:"0" doc:"Counted from 1; 0 or nothing searches all pages."` // counted from 1; 0 or absent: all pages
	ValidateFormat bool `json:"validate_format" doc:"Refuse a bill that violates the standard."`         // refuse a bill that violates the standard
	wrong          bool
}

// UnmarshalJSON remembers that a member had the wrong type, for the same reason
// as for File. Unknown members are ignored, other spellings of the known ones among them.
func (o *Options) UnmarshalJSON(raw []byte) error {
	var members struct {
		Page           *int  `json:"page"`
		ValidateFormat *bool `json:"validate_format"`
	}
	if o.wrong = json.Unmarshal(raw, &members) != nil; o.wrong {
		return nil
	}
	if members.Page != nil {
		o.Page = *members.Page
	}
	if members.ValidateFormat != nil {
		o.ValidateFormat = *members.ValidateFormat
	}
	return nil
}

// unquote returns the text of a JSON string in its place. Base64 has slashes, which some clients escape; other escapes
// need a copy.
func unquote(value jsontext.Value) ([]byte, bool) {
	text := value[1 : len(value)-1]
	first := bytes.IndexByte(text, '\\')
	if first < 0 {
		return text, true
	}
	if bytes.Count(text, []byte(`\`)) != bytes.Count(text, []byte(`\/`)) {
		text, err := jsontext.AppendUnquote(nil, value)
		return text, err == nil
	}
	return keep(text, func(c byte) (byte, bool) { return c, c != '\\' }), true
}

// keep changes bytes where they are, and leaves out those that are not kept.
func keep(text []byte, each func(byte) (byte, bool)) []byte {
	kept := text[:0]
	for _, c := range text {
		if c, ok := each(c); ok {
			kept = append(kept, c)
		}
	}
	return kept
}

// decodeFile reads base64 in all the forms in which clients send it: with a
// data URL in front, with line breaks, without padding, with the alphabet for
// URLs. The file takes the place of the text.
func decodeFile(text []byte) ([]byte, bool) {
	const scheme = "data:"
	if text = bytes.TrimSpace(text); len(text) >= len(scheme) && strings.EqualFold(string(text[:len(scheme)]), scheme) {
		header, data, comma := bytes.Cut(text[len(scheme):], []byte(","))
		if !comma || !bytes.HasSuffix(bytes.ToLower(bytes.TrimSpace(header)), []byte(";base64")) {
			return nil, false
		}
		text = data
	}
	if bytes.ContainsAny(text, " \t\r\n-_") {
		text = keep(text, func(c byte) (byte, bool) {
			switch c {
			case ' ', '\t', '\r', '\n':
				return 0, false
			case '-':
				return '+', true
			case '_':
				return '/', true
			}
			return c, true
		})
	}
	text = bytes.TrimRight(text, "=")
	// Three bytes take the place of four characters, which have been read before.
	n, err := base64.RawStdEncoding.Decode(text, text)
	return text[:n], err == nil
}
