package invoices

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"strings"
	"testing"

	"kontor/locales"
	"kontor/modules/invoices/qrbill"
)

func TestDecodeFile(t *testing.T) {
	file := []byte{0xfb, 0xff, 0xfe, 'x', 0}
	standard := base64.StdEncoding.EncodeToString(file)
	for name, text := range map[string]string{
		"standard":          standard,
		"without padding":   strings.TrimRight(standard, "="),
		"for URLs":          base64.URLEncoding.EncodeToString(file),
		"for URLs, raw":     base64.RawURLEncoding.EncodeToString(file),
		"line breaks":       standard[:3] + "\r\n" + standard[3:] + "\n",
		"blanks and tabs":   " " + standard[:2] + "\t" + standard[2:] + " ",
		"data URL":          "data:application/pdf;base64," + standard,
		"data URL, no type": "data:;base64," + standard,
		"data URL, upper":   "DATA:image/PNG;name=x;BASE64," + standard,
		"too much padding":  standard + "==",
	} {
		if got, ok := decodeFile(text); !ok || !bytes.Equal(got, file) {
			t.Errorf("%s: got % x, %v", name, got, ok)
		}
	}
	for name, text := range map[string]string{
		"other characters":       "abc$",
		"one character too much": "abcde",
		"data URL in percents":   "data:text/plain,hello",
		"data URL without data":  "data:application/pdf;base64",
		"padding in the middle":  "YQ==YQ==",
		"umlaut":                 "abcä",
	} {
		if got, ok := decodeFile(text); ok {
			t.Errorf("%s: got % x", name, got)
		}
	}
}

func TestReadInput_TakesWrongTypesForItsOwnErrors(t *testing.T) {
	for body, want := range map[string]struct {
		file  string
		wrong bool
		page  int
	}{
		`{"base64_file":"YQ==","options":{"page":2,"validate_format":true,"other":1}}`: {"YQ==", false, 2},
		`{"base64_file":"YQ==","options":null}`:                                        {"YQ==", false, 0},
		`{"base64_file":"YQ==","options":{"PAGE":99,"Validate_Format":"x"}}`:           {"YQ==", false, 0},
		`{"base64_file":"YQ==","options":{"page":null}}`:                               {"YQ==", false, 0},
		`{"base64_file":7}`:                                           {"", false, 0},
		`{"base64_file":null}`:                                        {"", false, 0},
		`{"base64_file":"YQ==","options":{"page":"2"}}`:               {"YQ==", true, 0},
		`{"base64_file":"YQ==","options":{"page":1.5}}`:               {"YQ==", true, 0},
		`{"base64_file":"YQ==","options":{"validate_format":"true"}}`: {"YQ==", true, 0},
		`{"base64_file":"YQ==","options":[]}`:                         {"YQ==", true, 0},
		`{"base64_file":"YQ==","options":"strict"}`:                   {"YQ==", true, 0},
	} {
		var in ReadInput
		if err := json.Unmarshal([]byte(body), &in); err != nil {
			t.Errorf("%s: %v", body, err)
			continue
		}
		if string(in.File) != want.file || in.Options.wrong != want.wrong || in.Options.Page != want.page {
			t.Errorf("%s: got %+v", body, in)
		}
	}
}

// TestTexts_StandInEveryLanguage walks over everything that an answer can say.
func TestTexts_StandInEveryLanguage(t *testing.T) {
	texts, err := locales.Load()
	if err != nil {
		t.Fatal(err)
	}
	keys := []string{"invoices.reason.unsupported_file.named", "invoices.warning.other_bill", "error.invalid_input"}
	for _, reason := range []qrbill.Reason{qrbill.NoQRCode, qrbill.NotSwissQRBill, qrbill.UnsupportedFile, qrbill.DamagedFile, qrbill.EncryptedFile,
		qrbill.PageOutOfRange, qrbill.TooLarge, qrbill.TooComplex, qrbill.InvalidPayload, reasonBase64, reasonOptions} {
		keys = append(keys, "invoices.reason."+string(reason))
	}
	for _, rule := range []qrbill.Rule{qrbill.RuleRequired, qrbill.RuleLength, qrbill.RuleCharacters, qrbill.RuleFormat, qrbill.RuleChecksum,
		qrbill.RuleCountry, qrbill.RuleValue, qrbill.RuleRange, qrbill.RuleMustBeEmpty, qrbill.RuleAccountType, qrbill.RuleTotalLength,
		qrbill.RuleTooMany, qrbill.RuleLineSeparator, qrbill.NoteCombinedAddress, qrbill.NoteBillingLine, qrbill.NoteNoPayment,
		qrbill.NoteDecimals, qrbill.NoteEncoding, qrbill.NoteBillingSyntax} {
		keys = append(keys, "invoices.rule."+string(rule))
	}
	for _, element := range []string{"qr_type", "version", "coding", "lines", "trailer", "iban", "ultimate_creditor", "amount", "currency",
		"reference_type", "reference", "message", "billing_information", "alternative_procedures"} {
		keys = append(keys, "invoices.element."+element)
	}
	for _, party := range []string{"creditor", "debtor"} {
		for _, part := range []string{"address_type", "name", "street", "building_number", "zip", "city", "country", "address_line_1", "address_line_2"} {
			keys = append(keys, "invoices.element."+party+"."+part)
		}
	}
	for _, lang := range locales.Languages() {
		for _, key := range keys {
			if !texts.Has(lang, key) {
				t.Errorf("%s lacks %s", lang, key)
			}
		}
	}
}

// FuzzDecodeFile looks for base64 that breaks the reader of requests.
func FuzzDecodeFile(f *testing.F) {
	f.Add("YQ==")
	f.Add("data:application/pdf;base64,YQ")
	f.Add("a-_b\r\n")
	f.Fuzz(func(t *testing.T, text string) {
		file, ok := decodeFile(text)
		if !ok {
			return
		}
		again, ok := decodeFile(base64.StdEncoding.EncodeToString(file))
		if !ok || !bytes.Equal(again, file) {
			t.Fatalf("% x became % x", file, again)
		}
	})
}
