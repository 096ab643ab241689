package invoices

import (
	"bytes"
	"encoding/base64"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"kontor/modules/bank/invoices/qrbill"
)

// ReadInput is the body of a request to read a bill.
type ReadInput struct {
	File    File    `json:"base64_file" required:"true" example:"JVBERi0xLjcKJeLjz9MK" doc:"The file in base64: PDF, PNG, JPEG, WebP, TIFF, GIF or BMP. A data URL is accepted, too."`
	Options Options `json:"options"`
}

// File is the invoice in base64. It refers to the body of the request, because a copy of a large file would use memory that
// no limit covers. A value of another type counts as an empty file, because the specification has one error code for all
// errors in this request.
type File struct{ value jsontext.Value }

// SetInPlace stores a reference to the value of any type.
func (f *File) SetInPlace(value jsontext.Value) { f.value = value }

// JSONString reports that the JSON type is string.
func (File) JSONString() (format string, orNull bool) { return "", false }

// size returns the bytes that the file has in the body, as base64.
func (f File) size() int { return len(f.value) }

// decode returns the file. It decodes in place, so that callers must call it only once.
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

// Options are the options of a request.
type Options struct {
	Page           int  `json:"page" minimum:"0" doc:"Page to search, counted from 1; 0 or absent: all pages."`
	ValidateFormat bool `json:"validate_format" doc:"Reject a bill that violates the standard."`
	Keep           bool `json:"keep" doc:"Keep what the bill says in the caller's list of bills."`
	malformed      bool
}

// UnmarshalJSON sets malformed when a field has the wrong type, so that Read reports it with the error code of this
// request. It ignores unknown fields. Names of fields are case-sensitive.
func (o *Options) UnmarshalJSON(raw []byte) error {
	type plain Options // without this method
	var members plain
	malformed := json.Unmarshal(raw, &members) != nil
	*o = Options(members)
	o.malformed = malformed
	return nil
}

// unquote returns the text of a JSON string. It works in place where the only escapes are slashes, which some clients
// escape in base64. Other escapes require a copy.
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
	return mapInPlace(text, func(c byte) (byte, bool) { return c, c != '\\' }), true
}

// mapInPlace replaces each byte by the result of f, and removes the bytes for which f returns false.
func mapInPlace(text []byte, f func(byte) (byte, bool)) []byte {
	out := text[:0]
	for _, c := range text {
		if c, ok := f(c); ok {
			out = append(out, c)
		}
	}
	return out
}

// decodeFile decodes base64 in place. It accepts the variants that clients send: a data URL, line breaks, no padding, and
// the alphabet for URLs.
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
		text = mapInPlace(text, func(c byte) (byte, bool) {
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
	// Decoding in place is safe: three bytes overwrite four characters that were read before.
	n, err := base64.RawStdEncoding.Decode(text, text)
	return text[:n], err == nil
}

// ReadResult is the response for a file with a bill.
type ReadResult struct {
	QRInfo QRInfo `json:"qr_info"`
	BillID string `json:"bill_id,omitzero" doc:"Of the kept bill, with options.keep."`
}

// QRInfo is the payment that a QR-bill requests.
type QRInfo struct {
	IBAN                  string          `json:"iban"`
	Creditor              Creditor        `json:"creditor"`
	AddressLines          []string        `json:"address_lines" example:"" doc:"The raw lines of the creditor's combined address; empty for a structured one."`
	Amount                *float64        `json:"amount" doc:"null when the payer enters the amount."`
	Currency              string          `json:"currency" example:"CHF"`
	ReferenceType         string          `json:"reference_type" example:"QRR" doc:"QRR, SCOR or NON; another type is returned as it is, with a warning."`
	Reference             string          `json:"reference"`
	Message               string          `json:"message" example:"Invoice of 15 June"`
	Debtor                *qrbill.Party   `json:"debtor"`
	BillingInformation    *qrbill.Billing `json:"billing_information"`
	AlternativeProcedures []string        `json:"alternative_procedures" example:"eBill/B/anna.keller@example.ch"`
	Page                  int             `json:"page"`
	Warnings              []Warning       `json:"warnings"`
}

// Creditor is the recipient of the payment.
type Creditor struct {
	Name    string `json:"name" example:"Robert Schneider AG"`
	Address string `json:"address"`
	Zip     string `json:"zip" example:"2501"`
	City    string `json:"city" example:"Biel"`
	Country string `json:"country" example:"CH"`
}

// Kinds of warnings.
const (
	WarningViolation = "violation"  // violates the standard; strict validation rejects the bill
	WarningNotice    = "notice"     // unusual, but accepted
	WarningOtherBill = "other_bill" // the file contains another bill
)

// Warning is a problem or a remark about a bill.
type Warning struct {
	Kind    string `json:"kind" enum:"violation,notice,other_bill"`
	Element string `json:"element" example:"creditor.address_type"` // element of the bill
	Rule    string `json:"rule" example:"combined_address"`
	Value   string `json:"value" example:"K"` // value of the element; the IBAN of another bill
	Page    int    `json:"page,omitzero"`
	Message string `json:"message" example:"The address is a combined one."` // in the language of the request
}

// newQRInfo converts a result. describe renders a warning in the language of the request.
func newQRInfo(r *qrbill.Result, describe func(Warning) string) QRInfo {
	b := r.Bill
	c := b.Creditor
	info := QRInfo{
		IBAN: b.IBAN, Creditor: Creditor{c.Name, c.Address, c.Zip, c.City, c.Country}, AddressLines: c.AddressLines, Debtor: b.Debtor, BillingInformation: b.Billing, Currency: b.Currency, ReferenceType: b.ReferenceType,
		Reference: b.Reference, Message: b.Message, Page: r.Page,
		AlternativeProcedures: b.AlternativeProcedures,
	}
	if b.Amount != nil {
		// This is exact: the amount has at most 14 digits, and the encoder writes the shortest decimal form.
		amount := float64(*b.Amount) / 100
		info.Amount = &amount
	}
	for _, f := range r.Findings {
		info.Warnings = append(info.Warnings, findingWarning(f))
	}
	for _, o := range r.Others {
		info.Warnings = append(info.Warnings, Warning{Kind: WarningOtherBill, Value: o.Bill.IBAN, Page: o.Page})
	}
	for i := range info.Warnings {
		info.Warnings[i].Message = describe(info.Warnings[i])
	}
	return info
}

func findingWarning(f qrbill.Finding) Warning {
	kind := WarningViolation
	if f.Tolerated() {
		kind = WarningNotice
	}
	return Warning{Kind: kind, Element: f.Element, Rule: string(f.Rule), Value: f.Value}
}
