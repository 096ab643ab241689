package qrbill

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func compare(got, want any) string { return cmp.Diff(want, got) }

// clean is a bill without any finding.
const clean = "SPC\n0200\n1\nCH4431999123000889012\nS\nRobert Schneider AG\nRue du Lac\n1268\n2501\nBiel\nCH\n\n\n\n\n\n\n\n" +
	"1949.75\nCHF\nS\nPia-Maria Rutschmann-Schnyder\nGrosse Marktgasse\n28\n9400\nRorschach\nCH\nQRR\n210000000003139471430009017\n" +
	"Auftrag vom 15.06.2026\nEPD\n//S1/10/10201409/11/190512\neBill/B/41010560425610173"

// with replaces lines of the clean bill, counted from 1 as in the standard.
func with(changes ...any) string {
	lines := strings.Split(clean, "\n")
	for i := 0; i < len(changes); i += 2 {
		lines[changes[i].(int)-1] = changes[i+1].(string)
	}
	return strings.Join(lines, "\n")
}

// upTo keeps the first lines of the clean bill.
func upTo(n int) string { return strings.Join(strings.Split(clean, "\n")[:n], "\n") }

// without drops lines of the clean bill.
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

const (
	plainIBAN = "CH5800791123000889012"
	long70    = "0123456789012345678901234567890123456789012345678901234567890123456789"
)

// TestParse_NamesEveryViolation checks the findings, written "element rule".
func TestParse_NamesEveryViolation(t *testing.T) {
	for _, tc := range []struct {
		name, text string
		want       string // findings joined by commas
	}{
		{"clean", clean, ""},
		{"CR LF", strings.ReplaceAll(clean, "\n", "\r\n"), ""},
		{"line end at the end", clean + "\n", ""},
		{"CR LF at the end", strings.ReplaceAll(clean, "\n", "\r\n") + "\r\n", ""},
		{"byte order mark", "\ufeff" + clean, ""},
		{"minimal length", upTo(31), ""},
		{"ends after the trailer's line end", upTo(31) + "\n", ""},
		{"only billing information", upTo(32), ""},
		{"CR only", strings.ReplaceAll(clean, "\n", "\r"), "lines line_separator"},
		{"mixed line ends", strings.Replace(clean, "\n", "\r\n", 5), "lines line_separator"},
		{"version 0201", with(2, "0201"), ""},
		{"version 0299", with(2, "0299"), ""},
		{"version with a blank", with(2, "0200 "), "version format"},
		{"type with a blank", with(1, "SPC "), "qr_type value"},
		{"coding 2", with(3, "2"), "coding value"},
		{"coding missing", with(3, ""), "coding value"},
		{"trailer missing", with(31, ""), "trailer required"},
		{"trailer in lower case", with(31, "epd"), "trailer required"},
		{"no trailer", upTo(30), "trailer required"},
		{"20 lines", upTo(20), "trailer required,reference_type required"},
		{"early trailer", without(30), "trailer required"},
		{"35 lines", clean + "\nx\ny", "lines too_many"},
		{"34 lines", clean + "\nx", ""},
		{"three alternative procedures", with(32, "eBill/B/1") + "\nx", "billing_information billing_line_missing,alternative_procedures too_many"},

		{"IBAN in lower case", with(4, strings.ToLower("CH4431999123000889012")), "iban format"},
		{"IBAN with blanks", with(4, "CH44 3199 9123 0008 8901 2"), "iban format"},
		{"IBAN with wrong check digits", with(4, "CH4431999123000889013"), "iban checksum"},
		{"IBAN of Austria", with(4, "AT611904300234573201"), "iban country"},
		{"IBAN too short", with(4, "CH443199912300088901"), "iban length"},
		{"IBAN missing", with(4, ""), "iban required"},
		{"Liechtenstein", with(4, "LI21088100002324013AA", 28, "NON", 29, ""), ""},

		{"combined creditor", with(5, "K", 7, "Rue du Lac 1268", 8, "2501 Biel", 9, "", 10, ""), "creditor.address_type combined_address"},
		{"combined with postcode and town", with(5, "K", 8, "2501 Biel"), "creditor.address_type combined_address,creditor.zip must_be_empty,creditor.city must_be_empty"},
		{"combined without second line", with(5, "K", 7, "2501 Biel", 8, "", 9, "", 10, ""), "creditor.address_type combined_address,creditor.address_line_2 required"},
		{"combined, long lines", with(5, "K", 7, long70+"x", 8, "2501 "+long70, 9, "", 10, ""), "creditor.address_type combined_address,creditor.address_line_1 length,creditor.address_line_2 length"},
		{"unknown address type", with(5, "X"), "creditor.address_type value"},
		{"address type missing", with(5, ""), "creditor.address_type required"},
		{"address type in lower case", with(5, "s"), "creditor.address_type value"},
		{"name missing", with(6, ""), "creditor.name required"},
		{"name blank", with(6, "  "), "creditor.name required"},
		{"name of 70", with(6, long70), ""},
		{"name of 71", with(6, long70+"x"), "creditor.name length"},
		{"name of 70 umlauts", with(6, strings.Repeat("ü", 70)), ""},
		{"decomposed umlauts count once", with(6, strings.Repeat("u\u0308", 70)), ""},
		{"street missing", with(7, "", 8, ""), ""},
		{"street of 71", with(7, long70+"x"), "creditor.street length"},
		{"number of 17", with(8, "12345678901234567"), "creditor.building_number length"},
		{"postcode missing", with(9, ""), "creditor.zip required"},
		{"postcode of 17", with(9, "12345678901234567"), "creditor.zip length"},
		{"town missing", with(10, ""), "creditor.city required"},
		{"town of 36", with(10, long70[:36]), "creditor.city length"},
		{"country missing", with(11, ""), "creditor.country required"},
		{"country in lower case", with(11, "ch"), "creditor.country country"},
		{"country of three letters", with(11, "CHE"), "creditor.country country"},
		{"no such country", with(11, "ZZ"), "creditor.country country"},
		{"country with blanks", with(11, "A AE"), "creditor.country country"},
		{"foreign creditor", with(9, "79540", 10, "Lörrach", 11, "DE"), ""},
		{"Kosovo", with(11, "XK"), ""},
		{"ultimate creditor", with(12, "S", 13, "Somebody"), "ultimate_creditor must_be_empty"},
		{"ultimate creditor, only a country", with(18, "CH"), "ultimate_creditor must_be_empty"},

		{"amount missing", with(19, ""), ""},
		{"amount without decimals", with(19, "250"), "amount amount_decimals"},
		{"amount of zero", with(19, "0.00"), "amount not_for_payment"},
		{"amount with comma", with(19, "250,00"), "amount format"},
		{"amount unreadable", with(19, "12a9.50"), "amount format"},
		{"amount too large", with(19, "1000000000.00"), "amount range"},
		{"amount negative", with(19, "-5.00"), "amount format,amount range"},
		{"EUR", with(20, "EUR"), ""},
		{"USD", with(20, "USD"), "currency value"},
		{"currency in lower case", with(20, "chf"), "currency value"},
		{"currency missing", with(20, ""), "currency required"},

		{"no debtor", with(21, "", 22, "", 23, "", 24, "", 25, "", 26, "", 27, ""), ""},
		{"debtor without name", with(22, ""), "debtor.name required"},
		{"debtor only a name", with(21, "", 23, "", 24, "", 25, "", 26, "", 27, ""), "debtor.address_type required,debtor.zip required,debtor.city required,debtor.country required"},
		{"debtor only a type", with(22, "", 23, "", 24, "", 25, "", 26, "", 27, ""), "debtor.name required,debtor.zip required,debtor.city required,debtor.country required"},
		{"combined debtor", with(21, "K", 23, "Marktgasse 28", 24, "9400 Rorschach", 25, "", 26, ""), "debtor.address_type combined_address"},
		{"debtor's town of 36", with(26, long70[:36]), "debtor.city length"},

		{"QRR with wrong check digit", with(29, "210000000003139471430009016"), "reference checksum"},
		{"QRR missing", with(29, ""), "reference required"},
		{"QRR of zeros", with(29, strings.Repeat("0", 27)), "reference value"},
		{"QRR of 26 digits", with(29, "21000000000313947143000901"), "reference length"},
		{"QRR with blanks", with(29, "21 00000 00003 13947 14300 09017"), "reference format"},
		{"QRR with an ordinary IBAN", with(4, plainIBAN), "reference_type account_type"},
		{"SCOR with a QR-IBAN", with(28, "SCOR", 29, "RF18539007547034"), "reference_type account_type"},
		{"NON with a QR-IBAN", with(28, "NON", 29, ""), "reference_type account_type"},
		{"SCOR", with(4, plainIBAN, 28, "SCOR", 29, "RF18539007547034"), ""},
		{"SCOR with wrong check digits", with(4, plainIBAN, 28, "SCOR", 29, "RF19539007547034"), "reference checksum"},
		{"SCOR in lower case", with(4, plainIBAN, 28, "SCOR", 29, "rf18539007547034"), "reference format"},
		{"SCOR with blanks", with(4, plainIBAN, 28, "SCOR", 29, "RF18 5390 0754 7034"), "reference format"},
		{"NON", with(4, plainIBAN, 28, "NON", 29, ""), ""},
		{"NON with a reference", with(4, plainIBAN, 28, "NON", 29, "RF18539007547034"), "reference must_be_empty"},
		{"reference type missing", with(28, ""), "reference_type required"},
		{"unknown reference type", with(28, "ESR"), "reference_type value"},
		{"reference type in lower case", with(28, "qrr"), "reference_type value"},
		{"wrong IBAN hides its kind", with(4, "CH5800791123000889013"), "iban checksum"},

		{"message missing", with(30, ""), ""},
		{"message of 140", with(30, long70+long70, 32, ""), ""},
		{"message of 141", with(30, long70+long70+"x", 32, ""), "message length"},
		{"message and billing information of 140", with(30, long70, 32, "//"+long70[:68]), ""},
		{"message and billing information of 141", with(30, long70, 32, "//"+long70[:69]), "billing_information total_length"},
		{"billing information of 141", with(30, "", 32, "//"+long70+long70[:69]), "billing_information length"},
		{"billing information without slashes", with(32, "S1/10/1"), "billing_information format"},
		{"billing information with broken date", with(32, "//S1/11/201399"), "billing_information billing_syntax"},
		{"other syntax", with(32, "//XY/abc"), ""},
		{"billing line left out", without(32), "billing_information billing_line_missing"},
		{"alternative procedure of 100", with(33, long70+long70[:30]), ""},
		{"alternative procedure of 101", with(33, long70+long70[:31]), "alternative_procedures length"},

		{"Latin Extended-A", with(6, "Garaža Đorđević"), ""},
		{"Romanian", with(6, "Șoseaua Țării"), ""},
		{"euro sign", with(30, "10 €"), ""},
		{"Greek", with(6, "Αθήνα"), "creditor.name characters"},
		{"Cyrillic", with(10, "Москва"), "creditor.city characters"},
		{"emoji", with(30, "Danke 👍"), "message characters"},
		{"tab", with(7, "Rue\tdu Lac"), "creditor.street characters"},
		{"typographic quotes", with(30, "„Auftrag“"), "message characters"},
		{"dash", with(30, "2025–2026"), "message characters"},
		{"replacement character", with(6, "M\ufffdller"), "creditor.name characters"},
		{"invalid UTF-8", with(6, "M\xfcller"), "creditor.name characters"},
		{"NUL", with(30, "a\x00b"), "message characters"},
		{"everything wrong", with(3, "0", 4, "CH4431999123000889013", 5, "X", 6, "", 11, "zz", 18, "CH", 19, "x", 20, "USD", 28, "ABC", 31, "", 32, "x"),
			"coding value,trailer required,iban checksum,creditor.name required,creditor.address_type value,creditor.country country,ultimate_creditor must_be_empty,amount format,currency value,reference_type value,billing_information format"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, findings, err := Parse(tc.text)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, f := range findings {
				got = append(got, f.Element+" "+string(f.Rule))
			}
			if joined := strings.Join(got, ","); joined != tc.want {
				t.Errorf("got  %s\nwant %s", joined, tc.want)
			}
		})
	}
}

func TestParse_RefusesWhatIsNoBill(t *testing.T) {
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
		bill, _, err := Parse(tc.text)
		if got := ReasonOf(err); got != tc.want || bill != nil {
			t.Errorf("%s: got %q, want %q", name, got, tc.want)
		}
	}
}

func TestParse_ReadsEveryField(t *testing.T) {
	bill, _, err := Parse(clean)
	if err != nil {
		t.Fatal(err)
	}
	amount := Amount(194975)
	want := &Bill{
		Version: "0200", IBAN: "CH4431999123000889012", Amount: &amount, Currency: "CHF",
		Creditor:      Party{Name: "Robert Schneider AG", Address: "Rue du Lac 1268", Zip: "2501", City: "Biel", Country: "CH"},
		Debtor:        &Party{Name: "Pia-Maria Rutschmann-Schnyder", Address: "Grosse Marktgasse 28", Zip: "9400", City: "Rorschach", Country: "CH"},
		ReferenceType: "QRR", Reference: "210000000003139471430009017", Message: "Auftrag vom 15.06.2026",
		Billing: &BillingInformation{Raw: "//S1/10/10201409/11/190512",
			Swico: &Swico{InvoiceNumber: "10201409", InvoiceDate: "2019-05-12"}},
		AlternativeProcedures: []string{"eBill/B/41010560425610173"},
	}
	if diff := compare(bill, want); diff != "" {
		t.Error(diff)
	}
}

// TestParse_InventsNothing checks single values of doubtful bills.
func TestParse_InventsNothing(t *testing.T) {
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
		"lines":     func(b *Bill) string { return strings.Join(b.Creditor.Lines, "|") },
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
		{"filled lines win over the second line", with(5, "K", 8, "9999 Elsewhere"), "town", "2501|Biel"},
		{"unknown address type reads as structured", with(5, "X"), "address", "Rue du Lac 1268"},
		{"country in upper case", with(11, "ch"), "country", "CH"},
		{"eBill in the billing line", without(32), "alt", "eBill/B/41010560425610173"},
		{"at most two procedures", with(32, "eBill/B/1") + "\nsecond", "alt", "eBill/B/1|eBill/B/41010560425610173"},
	} {
		bill, _, err := Parse(tc.text)
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
	_, findings, err := Parse(with(5, "K", 8, "2501 Biel", 9, "", 10, "", 19, "0", 32, "//S1/11/x"))
	if err != nil || len(findings) != 4 || len(Violations(findings)) != 0 {
		t.Errorf("got %v, %v: want four remarks and no violation", findings, err)
	}
}

// FuzzParse looks for texts that break the parser or make it contradict itself.
func FuzzParse(f *testing.F) {
	f.Add(clean)
	f.Add(strings.ReplaceAll(clean, "\n", "\r\n"))
	f.Add(with(5, "K", 8, "2501 Biel", 9, "", 10, ""))
	f.Add(with(19, "1'949,70"))
	f.Add(upTo(20))
	f.Fuzz(func(t *testing.T, text string) {
		bill, findings, err := Parse(text)
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
