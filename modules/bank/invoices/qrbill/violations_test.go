package qrbill

import (
	"strings"
	"testing"
)

const (
	plainIBAN = "CH5800791123000889012"
	long70    = "0123456789012345678901234567890123456789012345678901234567890123456789"
)

// Findings are compared in the form "element rule".
func TestParse_ReportsEveryViolation(t *testing.T) {
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
		{"QR-IBAN and QRR in EUR", with(20, "EUR"), "currency qr_currency_ending"},
		{"SCOR in EUR", with(4, plainIBAN, 20, "EUR", 28, "SCOR", 29, "RF18539007547034"), ""},
		{"NON in EUR", with(4, plainIBAN, 20, "EUR", 28, "NON", 29, ""), ""},
		{"QR-IBAN and NON in EUR", with(20, "EUR", 28, "NON", 29, ""), "currency qr_currency_ending,reference_type account_type"},
		{"ordinary IBAN and QRR in EUR", with(4, plainIBAN, 20, "EUR"), "currency qr_currency_ending,reference_type account_type"},
		{"QRR in another currency", with(20, "USD"), "currency value"},
		{"SCOR", with(4, plainIBAN, 28, "SCOR", 29, "RF18539007547034"), ""},
		{"SCOR with wrong check digits", with(4, plainIBAN, 28, "SCOR", 29, "RF19539007547034"), "reference checksum"},
		{"SCOR in lower case", with(4, plainIBAN, 28, "SCOR", 29, "rf18539007547034"), "reference format"},
		{"SCOR with blanks", with(4, plainIBAN, 28, "SCOR", 29, "RF18 5390 0754 7034"), "reference format"},
		{"NON", with(4, plainIBAN, 28, "NON", 29, ""), ""},
		{"NON with a reference", with(4, plainIBAN, 28, "NON", 29, "RF18539007547034"), "reference must_be_empty"},
		{"reference type missing", with(28, ""), "reference_type required"},
		{"unknown reference type", with(28, "ESR"), "reference_type value"},
		{"reference type in lower case", with(28, "qrr"), "reference_type value"},
		{"an invalid IBAN is not classified", with(4, "CH5800791123000889013"), "iban checksum"},

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
			_, findings, err := Parse(tc.text, today)
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
