package invoices

import (
	"bytes"
	"context"
	"encoding/base64"
	"net/http"
	"runtime"
	"strings"
	"testing"

	"github.com/gofiber/fiber/v2"
	"github.com/valyala/fasthttp"

	"kontor/locales"
	"kontor/modules/bank/invoices/qrbill"
	"kontor/server/endpoint"
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
		if got, ok := decodeFile([]byte(text)); !ok || !bytes.Equal(got, file) {
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
		if got, ok := decodeFile([]byte(text)); ok {
			t.Errorf("%s: got % x", name, got)
		}
	}
}

// bind decodes a body as the endpoint does.
func bind(tb testing.TB, body []byte) (in ReadInput) {
	tb.Helper()
	app := fiber.New()
	request := &fasthttp.RequestCtx{}
	request.Request.SetBodyRaw(body)
	c := app.AcquireCtx(request)
	defer app.ReleaseCtx(c)
	handler := endpoint.JSON(http.StatusOK, func(_ context.Context, bound ReadInput) (endpoint.None, error) {
		in = bound
		return endpoint.None{}, nil
	})
	if _, err := handler.Serve(tb.Context(), &endpoint.Request{Fiber: c}); err != nil {
		tb.Fatal(err)
	}
	return in
}

func TestFile_IsDecodedInPlace(t *testing.T) {
	want := bytes.Repeat([]byte{0xfb, 0xff, 0xfe, 'x', 0}, 200)
	standard := base64.StdEncoding.EncodeToString(want)
	for name, text := range map[string]string{
		"plain":           standard,
		"escaped slashes": strings.ReplaceAll(standard, "/", `\/`),
		"escaped lines":   standard[:76] + `\r\n` + standard[76:],
		"an escaped code": `\u002b` + standard[1:],
		"both":            strings.ReplaceAll(standard, "/", `\/`) + `\n`,
	} {
		if name == "an escaped code" && standard[0] != '+' {
			t.Fatal("the sample must begin with a plus")
		}
		body := []byte(`{"base64_file":"` + text + `"}`)
		file, ok := bind(t, body).File.decode()
		if !ok || !bytes.Equal(file, want) {
			t.Errorf("%s: got %d bytes, %v", name, len(file), ok)
		}
	}
}

func TestFile_AllocatesNoMemoryBesidesTheBody(t *testing.T) {
	const size = 8 << 20
	body := []byte(`{"base64_file":"` + base64.StdEncoding.EncodeToString(make([]byte, size)) + `"}`)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	file, ok := bind(t, body).File.decode()
	runtime.ReadMemStats(&after)
	if !ok || len(file) != size {
		t.Fatalf("got %d bytes", len(file))
	}
	if allocated := after.TotalAlloc - before.TotalAlloc; allocated > size/4 {
		t.Errorf("decoding a file of %d bytes allocated %d bytes", size, allocated)
	}
}

// BenchmarkUpload binds and decodes a request with the largest file. It reports the memory in addition to the body.
func BenchmarkUpload(b *testing.B) {
	body := []byte(`{"base64_file":"` + base64.StdEncoding.EncodeToString(make([]byte, 20<<20)) + `"}`)
	again := make([]byte, len(body))
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		copy(again, body)
		if file, ok := bind(b, again).File.decode(); !ok || len(file) != 20<<20 {
			b.Fatalf("got %d bytes", len(file))
		}
	}
}

func TestReadInput_AcceptsWrongTypesToReportItsOwnError(t *testing.T) {
	for body, want := range map[string]struct {
		file      string
		malformed bool
		page      int
	}{
		`{"base64_file":"YQ==","options":{"page":2,"validate_format":true,"other":1}}`: {"a", false, 2},
		`{"base64_file":"YQ==","options":null}`:                                        {"a", false, 0},
		`{"base64_file":"YQ==","options":{"PAGE":99,"Validate_Format":"x"}}`:           {"a", false, 0},
		`{"base64_file":"YQ==","options":{"page":null}}`:                               {"a", false, 0},
		`{"base64_file":7}`:                                           {"", false, 0},
		`{"base64_file":null}`:                                        {"", false, 0},
		`{"base64_file":"YQ==","options":{"page":"2"}}`:               {"a", true, 0},
		`{"base64_file":"YQ==","options":{"page":1.5}}`:               {"a", true, 0},
		`{"base64_file":"YQ==","options":{"validate_format":"true"}}`: {"a", true, 0},
		`{"base64_file":"YQ==","options":[]}`:                         {"a", true, 0},
		`{"base64_file":"YQ==","options":"strict"}`:                   {"a", true, 0},
	} {
		in := bind(t, []byte(body))
		file, ok := in.File.decode()
		if !ok || string(file) != want.file || in.Options.malformed != want.malformed || in.Options.Page != want.page {
			t.Errorf("%s: got %+v", body, in)
		}
	}
}

// TestTexts_ExistInEveryLanguage checks the texts of all reasons, rules and elements.
func TestTexts_ExistInEveryLanguage(t *testing.T) {
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
				t.Errorf("%s has no text %s", lang, key)
			}
		}
	}
}

// FuzzDecodeFile checks that decoded files survive a round trip.
func FuzzDecodeFile(f *testing.F) {
	f.Add("YQ==")
	f.Add("data:application/pdf;base64,YQ")
	f.Add("a-_b\r\n")
	f.Fuzz(func(t *testing.T, text string) {
		file, ok := decodeFile([]byte(text))
		if !ok {
			return
		}
		file = bytes.Clone(file)
		again, ok := decodeFile([]byte(base64.StdEncoding.EncodeToString(file)))
		if !ok || !bytes.Equal(again, file) {
			t.Fatalf("% x became % x", file, again)
		}
	})
}
