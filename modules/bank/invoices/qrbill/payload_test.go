package qrbill

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func compare(got, want any) string { return cmp.Diff(want, got) }

// today is a time at which versions 2.3 and 2.4 of the standard are valid.
var today = time.Date(2026, time.November, 22, 12, 0, 0, 0, time.UTC)

// clean is a bill without findings.
const clean = "SPC\n0200\n1\nCH4431999123000889012\nS\nRobert Schneider AG\nRue du Lac\n1268\n2501\nBiel\nCH\n\n\n\n\n\n\n\n" +
	"1949.75\nCHF\nS\nPia-Maria Rutschmann-Schnyder\nGrosse Marktgasse\n28\n9400\nRorschach\nCH\nQRR\n210000000003139471430009017\n" +
	"Auftrag vom 15.06.2026\nEPD\n//S1/10/10201409/11/190512\neBill/B/41010560425610173"

// with returns the clean bill with other lines. Lines are counted from 1, as in the standard.
func with(changes ...any) string {
	lines := strings.Split(clean, "\n")
	for i := 0; i < len(changes); i += 2 {
		lines[changes[i].(int)-1] = changes[i+1].(string)
	}
	return strings.Join(lines, "\n")
}

// upTo returns the first n lines of the clean bill.
func upTo(n int) string { return strings.Join(strings.Split(clean, "\n")[:n], "\n") }

// without returns the clean bill without some lines.
func without(numbers ...int) string {
	var kept []string
	for i, line := range strings.Split(clean, "\n") {
		drop := false
		for _, n := range numbers {
			drop = drop || n == i+1
		}
		if !drop {
			kept = append(kept, line)
		}
	}
	return strings.Join(kept, "\n")
}

func TestParse_RejectsOtherTexts(t *testing.T) {
	for name, tc := range map[string]struct {
		text string
		want Reason
	}{
		"empty":             {"", NotSwissQRBill},
		"link":              {"https://example.com/SPC", NotSwissQRBill},
		"EPC code":          {"BCD\n002\n1\nSCT\nCOBADEFFXXX\nWebagentur\nDE89370400440532013000\nEUR149.00", NotSwissQRBill},
		"only the mark":     {"SPC", NotSwissQRBill},
		"wrong mark":        {with(1, "SPX"), NotSwissQRBill},
		"mark in lower":     {with(1, "spc"), NotSwissQRBill},
		"mark too long":     {with(1, "SPCX"), NotSwissQRBill},
		"version 0300":      {with(2, "0300"), InvalidPayload},
		"version 0100":      {with(2, "0100"), InvalidPayload},
		"version 02":        {with(2, "02"), InvalidPayload},
		"version missing":   {with(2, ""), InvalidPayload},
		"version in words":  {with(2, "two"), InvalidPayload},
		"nineteen lines":    {upTo(19), InvalidPayload},
		"two lines":         {upTo(2), InvalidPayload},
		"beyond any symbol": {clean + strings.Repeat("x", maxTextBytes), InvalidPayload},
	} {
		bill, _, err := Parse(tc.text, today)
		if got := ReasonOf(err); got != tc.want || bill != nil {
			t.Errorf("%s: got %q, want %q", name, got, tc.want)
		}
	}
}

func TestParse_ReadsEveryField(t *testing.T) {
	bill, _, err := Parse(clean, today)
	if err != nil {
		t.Fatal(err)
	}
	amount := Amount(194975)
	want := &Bill{
		Version: "0200", IBAN: "CH4431999123000889012", Amount: &amount, Currency: "CHF",
		Creditor:      Party{Name: "Robert Schneider AG", Address: "Rue du Lac 1268", Zip: "2501", City: "Biel", Country: "CH"},
		Debtor:        &Party{Name: "Pia-Maria Rutschmann-Schnyder", Address: "Grosse Marktgasse 28", Zip: "9400", City: "Rorschach", Country: "CH"},
		ReferenceType: "QRR", Reference: "210000000003139471430009017", Message: "Auftrag vom 15.06.2026",
		Billing: &Billing{Raw: "//S1/10/10201409/11/190512",
			Swico: &Swico{InvoiceNumber: "10201409", InvoiceDate: "2019-05-12"}},
		AlternativeProcedures: []string{"eBill/B/41010560425610173"},
	}
	if diff := compare(bill, want); diff != "" {
		t.Error(diff)
	}
}

// The bills have errors or unusual values, of which Parse must guess or repair none.
func TestParse_KeepsValuesOfFaultyBills(t *testing.T) {
	get := map[string]func(*Bill) string{
		"iban":      func(b *Bill) string { return b.IBAN },
		"amount":    func(b *Bill) string { return optional(b.Amount) },
		"currency":  func(b *Bill) string { return b.Currency },
		"reference": func(b *Bill) string { return b.Reference },
		"message":   func(b *Bill) string { return b.Message },
		"name":      func(b *Bill) string { return b.Creditor.Name },
		"address":   func(b *Bill) string { return b.Creditor.Address },
		"town":      func(b *Bill) string { return b.Creditor.Zip + "|" + b.Creditor.City },
		"country":   func(b *Bill) string { return b.Creditor.Country },
		"lines":     func(b *Bill) string { return strings.Join(b.Creditor.AddressLines, "|") },
		"alt":       func(b *Bill) string { return strings.Join(b.AlternativeProcedures, "|") },
	}
	for _, tc := range []struct{ name, text, field, want string }{
		{"wrong check digits stay", with(4, "CH4431999123000889013"), "iban", "CH4431999123000889013"},
		{"blanks and case of the IBAN go", with(4, " ch44 3199 9123 0008 8901 2"), "iban", "CH4431999123000889012"},
		{"unreadable amount is absent", with(19, "12a9.50"), "amount", ""},
		{"missing amount is absent", with(19, ""), "amount", ""},
		{"zero is zero", with(19, "0.00"), "amount", "0.00"},
		{"three decimals are not rounded", with(19, "12.345"), "amount", ""},
		{"foreign currency stays", with(20, "USD"), "currency", "USD"},
		{"wrong reference stays", with(29, "210000000003139471430009016"), "reference", "210000000003139471430009016"},
		{"short reference is not padded", with(29, "1234"), "reference", "1234"},
		{"blanks of the reference go", with(29, "21 00000 00003 13947 14300 09017"), "reference", "210000000003139471430009017"},
		{"reference of an unknown type stays", with(28, "ESR"), "reference", "210000000003139471430009017"},
		{"NON has none", with(28, "NON"), "reference", ""},
		{"message stays as it is", with(30, " Auftrag, "), "message", " Auftrag, "},
		{"blank message is none", with(30, "   "), "message", ""},
		{"early trailer is no message", without(30), "message", ""},
		{"trailer as message", with(30, "EPD"), "message", "EPD"},
		{"billing information is no message", upTo(32), "message", "Auftrag vom 15.06.2026"},
		{"name trimmed", with(6, "  Robert Schneider AG "), "name", "Robert Schneider AG"},
		{"decomposed umlaut", with(6, "Mu\u0308ller"), "name", "Müller"},
		{"plus sign stays", with(6, "Rölli + Partner"), "name", "Rölli + Partner"},
		{"no street", with(7, "", 8, ""), "address", ""},
		{"number without street", with(7, ""), "address", "1268"},
		{"number in the street", with(7, "Rue du Lac 1268", 8, ""), "address", "Rue du Lac 1268"},
		{"combined street", with(5, "K", 7, "Rue du Lac 1268", 8, "2501 Biel", 9, "", 10, ""), "address", "Rue du Lac 1268"},
		{"combined town", with(5, "K", 8, "2501 Biel", 9, "", 10, ""), "town", "2501|Biel"},
		{"combined lines", with(5, "K", 8, "2501  Biel", 9, "", 10, ""), "lines", "Rue du Lac|2501  Biel"},
		{"combined town on the first line", with(5, "K", 7, "2501 Biel", 8, "", 9, "", 10, ""), "town", "2501|Biel"},
		{"combined town on the first line leaves no street", with(5, "K", 7, "2501 Biel", 8, "", 9, "", 10, ""), "address", ""},
		{"combined without a town", with(5, "K", 7, "Rue du Lac 1268", 8, "", 9, "", 10, ""), "town", "|"},
		{"filled lines take precedence over the second line", with(5, "K", 8, "9999 Elsewhere"), "town", "2501|Biel"},
		{"unknown address type reads as structured", with(5, "X"), "address", "Rue du Lac 1268"},
		{"country in upper case", with(11, "ch"), "country", "CH"},
		{"eBill in the billing line", without(32), "alt", "eBill/B/41010560425610173"},
		{"at most two procedures", with(32, "eBill/B/1") + "\nsecond", "alt", "eBill/B/1|eBill/B/41010560425610173"},
	} {
		bill, _, err := Parse(tc.text, today)
		if err != nil {
			t.Errorf("%s: %v", tc.name, err)
			continue
		}
		if got := get[tc.field](bill); got != tc.want {
			t.Errorf("%s: %s is %q, want %q", tc.name, tc.field, got, tc.want)
		}
	}
}

func optional(a *Amount) string {
	if a == nil {
		return ""
	}
	return a.String()
}

func TestTolerated_AreOnlyRemarks(t *testing.T) {
	_, findings, err := Parse(with(5, "K", 8, "2501 Biel", 9, "", 10, "", 19, "0", 32, "//S1/11/x"), today)
	if err != nil || len(findings) != 4 || len(Violations(findings)) != 0 {
		t.Errorf("got %v, %v: want four remarks and no violation", findings, err)
	}
}

// FuzzParse checks that bills without violations have valid values.
func FuzzParse(f *testing.F) {
	f.Add(clean)
	f.Add(strings.ReplaceAll(clean, "\n", "\r\n"))
	f.Add(with(5, "K", 8, "2501 Biel", 9, "", 10, ""))
	f.Add(with(19, "1'949,70"))
	f.Add(upTo(20))
	f.Fuzz(func(t *testing.T, text string) {
		bill, findings, err := Parse(text, today)
		if (bill == nil) == (err == nil) {
			t.Fatalf("bill %v with error %v", bill, err)
		}
		if err != nil {
			return
		}
		if len(Violations(findings)) == 0 {
			if checkIBAN(bill.IBAN) != "" || (bill.Currency != "CHF" && bill.Currency != "EUR") {
				t.Fatalf("no violation, but account %q and currency %q", bill.IBAN, bill.Currency)
			}
			if bill.Amount != nil && (*bill.Amount < 0 || *bill.Amount > maxAmount) {
				t.Fatalf("no violation, but amount %s", bill.Amount)
			}
		}
	})
}
