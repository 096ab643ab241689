package invoices_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"image/png"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/makiuchi-d/gozxing"
	"github.com/makiuchi-d/gozxing/qrcode"

	"kontor/server/access"
	"kontor/server/servertest"
)

const path = "/v1/invoices/qrcode"

func sample(t testing.TB, name string) []byte {
	t.Helper()
	file, err := os.ReadFile(filepath.Join("../../../testdata/qr/files", name))
	if err != nil {
		t.Fatal(err)
	}
	return file
}

func body(t testing.TB, name string, options map[string]any) map[string]any {
	t.Helper()
	return map[string]any{"base64_file": base64.StdEncoding.EncodeToString(sample(t, name)), "options": options}
}

// warm waits until the server has compiled its PDF engine. On a slow machine, it returns 503 until then.
func warm(t *testing.T, client *servertest.Client) {
	t.Helper()
	for range 50 {
		if client.Do("POST", path, body(t, "url-b12.pdf", nil)).Status != http.StatusServiceUnavailable {
			return
		}
	}
	t.Fatal("the PDF engine does not start")
}

func TestRead(t *testing.T) {
	s := servertest.Start(t)
	advisor, customer := s.User(access.Advisor), s.User(access.Customer)
	warm(t, advisor)
	strict := map[string]any{"validate_format": true}
	servertest.Run(t, s, []servertest.Scenario{
		{Name: "the payment of a picture", As: advisor, Method: "POST", Path: path, Body: body(t, "png-100-b60-00.png", nil), Status: 200,
			Contains: []string{`{"qr_info":{`, `"iban":"CH9309000564140054668"`, `"amount":1155.65`, `"currency":"CHF"`, `"reference_type":"NON"`,
				`"reference":""`, `"zip":"9490"`, `"city":"Vaduz"`, `"debtor":null`, `"country":"LI"},"address_lines":["","9490 Vaduz"]`, `"alternative_procedures":[]`,
				`"page":1`, `"kind":"notice"`, `"rule":"combined_address"`}},
		{Name: "an open amount is null", As: advisor, Method: "POST", Path: path, Body: body(t, "formats-b42-05.tif", nil), Status: 200,
			Contains: []string{`"amount":null`, `"page":2`}},
		{Name: "two bills", As: advisor, Method: "POST", Path: path, Body: body(t, "pair-0.pdf", nil), Status: 200,
			Contains: []string{`"iban":"CH9130272435117744051"`, `"kind":"other_bill"`, `"value":"CH2830456328301526105"`, `"page":2`}},
		{Name: "the second page", As: advisor, Method: "POST", Path: path, Body: body(t, "pair-0.pdf", map[string]any{"page": 2}), Status: 200,
			Contains: []string{`"iban":"CH2830456328301526105"`, `"warnings":[]`}, Excludes: []string{"CH9130272435117744051"}},
		{Name: "wrong check digits are a warning", As: advisor, Method: "POST", Path: path, Body: body(t, "dmg-badiban.pdf", nil), Status: 200,
			Contains: []string{`"iban":"CH0130272435117744051"`, `"kind":"violation"`, `"rule":"checksum"`, `"IBAN: the check digits are wrong."`}},
		{Name: "wrong check digits are rejected by strict validation", As: advisor, Method: "POST", Path: path, Body: body(t, "dmg-badiban.pdf", strict), Status: 400,
			Contains: []string{`"code":"invalid_input"`, `"reason":"invalid_payload"`, `"violations":[{`, `"element":"iban"`, `"rule":"checksum"`, `"value":"CH0130272435117744051"`}},
		{Name: "in German", As: advisor.With("Accept-Language", "de"), Method: "POST", Path: path, Body: body(t, "noqr-white.png", nil), Status: 400,
			Contains: []string{`"code":"invalid_input"`, `"reason":"no_qr_code"`, `Die Datei enthält keinen lesbaren QR-Code.`}},
		{Name: "HEIC is named", As: advisor, Method: "POST", Path: path, Body: body(t, "heic-b33-00.heic", nil), Status: 400,
			Contains: []string{`"reason":"unsupported_file"`, `"format":"HEIC"`, `Photos of the type HEIC are not supported. In the settings of the iPhone, choose`}},
		{Name: "no file", As: advisor, Method: "POST", Path: path, Body: map[string]any{}, Status: 400, Contains: []string{`"code":"invalid_input"`, `"reason":"invalid_base64"`}},
		{Name: "an anonymous caller", Method: "POST", Path: path, Body: map[string]any{}, Status: 401},
		{Name: "a customer, with a broken request", As: customer, Method: "POST", Path: path, Body: map[string]any{}, Status: 400},
		{Name: "without the grant", As: s.User(), Method: "POST", Path: path, Body: map[string]any{}, Status: 403},
	})
}

// Every malformed body has the code of this route, and a reason.
func TestRead_RejectsMalformedBodies(t *testing.T) {
	s := servertest.Start(t)
	advisor := s.User(access.Advisor)
	for body, reason := range map[string]string{
		``: "invalid_base64", `{}`: "invalid_base64", `{"base64_file":null}`: "invalid_base64", `{"base64_file":7}`: "invalid_base64",
		`{"base64_file":["YQ=="]}`: "invalid_base64", `{"base64_file":{}}`: "invalid_base64", `{"base64_file":true}`: "invalid_base64",
		`{"base64_file":""}`: "invalid_base64", `{"base64_file":"%%%"}`: "invalid_base64", `{"base64_file":"abcde"}`: "invalid_base64",
		`null`: "invalid_body", `[]`: "invalid_body", `[{"base64_file":"YQ=="}]`: "invalid_body", `"YQ=="`: "invalid_body", `7`: "invalid_body",
		`{`: "invalid_body", `{"base64_file":"YQ=="`: "invalid_body", `{"base64_file":"YQ==",}`: "invalid_body", `{'base64_file':'YQ=='}`: "invalid_body",
		`{"base64_file":"YQ=="}x`: "invalid_body", `{"base64_file":"YQ=="}{}`: "invalid_body", "{\"base64_file\":\"\xff\"}": "invalid_body",
		`{"base64_file":"YQ==","base64_file":"YQ=="}`: "invalid_body", `{"base64_file":"YQ==","options":{"page":1,"page":2}}`: "invalid_body",
		`{"base64_file":"YQ==","options":[]}`: "invalid_options", `{"base64_file":"YQ==","options":"x"}`: "invalid_options",
		`{"base64_file":"YQ==","options":{"page":"1"}}`: "invalid_options", `{"base64_file":"YQ==","options":{"page":1.5}}`: "invalid_options",
		`{"base64_file":"YQ==","options":{"validate_format":"true"}}`: "invalid_options", `{"base64_file":"YQ==","options":{"validate_format":1}}`: "invalid_options",
		`{"base64_file":"YQ==","options":{"keep":[]}}`: "invalid_options", `{"base64_file":"YQ==","options":null}`: "unsupported_file",
		`{"base64_file":"YQ==","options":{"page":99999999999999999999}}`: "invalid_options",
	} {
		answer := advisor.Do("POST", path, body).Expect(t, http.StatusBadRequest).JSON(t)
		details, _ := answer["details"].(map[string]any)
		if text, _ := answer["message"].(string); answer["code"] != "invalid_input" || details["reason"] != reason || text == "" {
			t.Errorf("%s: got %v, want %s", body, answer, reason)
		}
	}
}

func TestRead_FollowsTheStandardOfTheDay(t *testing.T) {
	s := servertest.Start(t)
	strict := body(t, "png-euro-qr-iban.png", map[string]any{"validate_format": true})
	check := func(date string, status int, want string) {
		t.Helper()
		day, err := time.Parse(time.DateOnly, date)
		if err != nil {
			t.Fatal(err)
		}
		s.Clock.Set(day)
		advisor := s.User(access.Advisor) // earlier sessions have expired
		if got := advisor.Do("POST", path, strict).Expect(t, status); !strings.Contains(got.Body, want) {
			t.Errorf("%s: got %s, want %s", date, got.Body, want)
		}
	}
	check("2026-11-22", 200, `"kind":"notice","element":"currency","rule":"qr_currency_ending","value":"EUR"`)
	check("2027-12-01", 400, `"kind":"violation","element":"currency","rule":"qr_currency","value":"EUR"`)
}

// symbolOf returns an image of a code in base64.
func symbolOf(t *testing.T, text string) string {
	t.Helper()
	code, err := qrcode.NewQRCodeWriter().EncodeWithoutHint(text, gozxing.BarcodeFormat_QR_CODE, 400, 400)
	if err != nil {
		t.Fatal(err)
	}
	var picture bytes.Buffer
	if err := png.Encode(&picture, code); err != nil {
		t.Fatal(err)
	}
	return base64.StdEncoding.EncodeToString(picture.Bytes())
}

// The scenarios compare every response with the OpenAPI document.
func TestRead_ReturnsValuesThatViolateTheStandard(t *testing.T) {
	s := servertest.Start(t)
	advisor := s.User(access.Advisor)
	bill := "SPC\n0200\n1\nCH5800791123000889012\nS\nMuster AG\n\n\n8000\nBern\nCH\n" + strings.Repeat("\n", 7) + "1.00\nUSD\n"
	servertest.Run(t, s, []servertest.Scenario{
		{Name: "another type of reference", As: advisor, Method: "POST", Path: path, Status: 200,
			Body:     map[string]any{"base64_file": symbolOf(t, bill+strings.Repeat("\n", 7)+"XXX\n123\n\nEPD")},
			Contains: []string{`"reference_type":"XXX"`, `"reference":"123"`, `"currency":"USD"`}},
		{Name: "no reference in a truncated text", As: advisor, Method: "POST", Path: path, Status: 200,
			Body: map[string]any{"base64_file": symbolOf(t, bill)}, Contains: []string{`"reference_type":""`, `"amount":1,`}},
	})
}

// TestRead_Bodies sends the request bodies of the corpus unchanged.
func TestRead_Bodies(t *testing.T) {
	raw := sample(t, "../manifest.json")
	var manifest struct {
		Entries []struct {
			File      string
			IsRequest bool `json:"is_request"`
			Expected  struct {
				Info *struct{ IBAN string } `json:"qr_info"`
			}
		}
	}
	if err := json.Unmarshal(raw, &manifest); err != nil {
		t.Fatal(err)
	}
	s := servertest.Start(t)
	advisor := s.User(access.Advisor)
	warm(t, advisor)
	seen := 0
	for _, e := range manifest.Entries {
		if !e.IsRequest {
			continue
		}
		seen++
		answer := advisor.Do("POST", path, json.RawMessage(sample(t, strings.TrimPrefix(e.File, "files/"))))
		if e.Expected.Info == nil {
			if text := answer.Body; answer.Status != http.StatusBadRequest || !strings.Contains(text, `"code":"invalid_input"`) {
				t.Errorf("%s: got %d %s", e.File, answer.Status, text)
			}
			continue
		}
		if text := answer.Body; answer.Status != http.StatusOK || !strings.Contains(text, e.Expected.Info.IBAN) {
			t.Errorf("%s: got %d %s", e.File, answer.Status, text)
		}
	}
	if seen == 0 {
		t.Error("the corpus has no request bodies")
	}
}
