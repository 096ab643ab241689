package invoices

import (
	"encoding/base64"
	"strings"

	"github.com/go-json-experiment/json"
)

// ReadInput is the body of a request to read a bill.
type ReadInput struct {
	File    File    `json:"base64_file" required:"true" example:"JVBERi0xLjcKJeLjz9MK" doc:"The file in base64: PDF, PNG, JPEG, WebP, TIFF, GIF, BMP. A data URL is taken, too."`
	Options Options `json:"options"`
}

// File is the invoice in base64. A value of another type counts as an empty
// file, because the specification wants one code for everything that is wrong
// with this request.
type File string

// UnmarshalJSON accepts any value.
func (f *File) UnmarshalJSON(raw []byte) error {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		*f = File(text)
	}
	return nil
}

// Options say what is wanted of the file.
type Options struct {
	Page           int  `json:"page" minimum:"0" doc:"Counted from 1; 0 or nothing searches all pages."` // counted from 1; 0 or absent: all pages
	ValidateFormat bool `json:"validate_format" doc:"Refuse a bill that violates the standard."`         // refuse a bill that violates the standard
	wrong          bool
}

// UnmarshalJSON remembers that a member had the wrong type, for the same reason
// as File. Unknown members are ignored, other spellings of the known ones among them.
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

// decodeFile reads base64 in all the forms in which clients send it: with a
// data URL in front, with line breaks, without padding, with the alphabet for URLs.
func decodeFile(text string) ([]byte, bool) {
	const scheme = "data:"
	if text = strings.TrimSpace(text); len(text) >= len(scheme) && strings.EqualFold(text[:len(scheme)], scheme) {
		header, data, comma := strings.Cut(text[len(scheme):], ",")
		if !comma || !strings.HasSuffix(strings.ToLower(strings.TrimSpace(header)), ";base64") {
			return nil, false
		}
		text = data
	}
	if strings.ContainsAny(text, " \t\r\n-_") {
		text = strings.NewReplacer(" ", "", "\t", "", "\r", "", "\n", "", "-", "+", "_", "/").Replace(text)
	}
	text = strings.TrimRight(text, "=")
	file, err := base64.RawStdEncoding.DecodeString(text)
	return file, err == nil
}
