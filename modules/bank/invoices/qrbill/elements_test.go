package qrbill

import (
	"slices"
	"strings"
	"testing"
)

func TestCheckIBAN(t *testing.T) {
	for iban, want := range map[string]Rule{
		"CH9300762011623852957":  "",
		"LI21088100002324013AA":  "",
		"CH5800791123000889012":  "",
		"CH4431999123000889012":  "",
		"CH560023051974619269A":  "",
		"CH9130272435117744051":  "",
		"":                       RuleRequired,
		"CH9300762011623852956":  RuleChecksum,
		"CH9300762011623852975":  RuleChecksum,
		"LI21088100002324013AB":  RuleChecksum,
		"CH930076201162385295":   RuleLength,
		"CH93007620116238529577": RuleLength,
		"AT611904300234573201":   RuleCountry,
		"DE89370400440532013000": RuleCountry,
		"XX9300762011623852957":  RuleCountry,
		"ch9300762011623852957":  RuleFormat,
		"1H9300762011623852957":  RuleFormat,
		"CHX300762011623852957":  RuleFormat,
		"CH93A0762011623852957":  RuleFormat,
		"CH93007620116238529-7":  RuleFormat,
		"CH93007620116238529a7":  RuleFormat,
		"C":                      RuleFormat,
	} {
		if got := checkIBAN(iban); got != want {
			t.Errorf("checkIBAN(%q): got %q, want %q", iban, got, want)
		}
	}
}

func TestIsQRIBAN(t *testing.T) {
	for iban, want := range map[string]bool{
		"CH4431999123000889012": true, "CH4430000123000889012": true, "LI4431999123000889012": true,
		"CH4429999123000889012": false, "CH4432000123000889012": false, "CH9300762011623852957": false, "CH44319991230008890": false, "": false,
	} {
		if got := isQRIBAN(iban); got != want {
			t.Errorf("isQRIBAN(%q): got %v, want %v", iban, got, want)
		}
	}
}

func TestCheckQRReference(t *testing.T) {
	for ref, want := range map[string]Rule{
		"210000000003139471430009017":  "",
		"000000000000000000001234565":  "",
		"482920472075938094604149314":  "",
		"":                             RuleRequired,
		"210000000003139471430009016":  RuleChecksum,
		"120000000003139471430009017":  RuleChecksum,
		"000000000000000000000000000":  RuleValue,
		"21000000000313947143000901":   RuleLength,
		"2100000000031394714300090170": RuleLength,
		"21000000000313947143000901A":  RuleFormat,
		"21 00000 00003 13947 14300":   RuleFormat,
		"RF18539007547034":             RuleFormat,
		"-10000000003139471430009017":  RuleFormat,
	} {
		if got := checkQRReference(ref); got != want {
			t.Errorf("checkQRReference(%q): got %q, want %q", ref, got, want)
		}
	}
}

func TestCheckCreditorReference(t *testing.T) {
	for ref, want := range map[string]Rule{
		"RF18539007547034":            "",
		"RF451234512345":              "",
		"RF040":                       "",
		"RF49N73GBST73AKL38ZX":        "",
		"RF661779416":                 "",
		"":                            RuleRequired,
		"RF04":                        RuleLength,
		"RF":                          RuleLength,
		"RF1853900754703400000000000": RuleLength,
		"RF431234512345":              RuleChecksum,
		"RF19539007547034":            RuleChecksum,
		"RF00539007547034":            RuleChecksum,
		"RF01539007547034":            RuleChecksum,
		"RF99539007547034":            RuleChecksum,
		"RF20.0000.3":                 RuleFormat,
		"rf18539007547034":            RuleFormat,
		"XX18539007547034":            RuleFormat,
		"RFA8539007547034":            RuleFormat,
		"RF18539007547a34":            RuleFormat,
		"RF18 5390 0754":              RuleFormat,
	} {
		if got := checkCreditorReference(ref); got != want {
			t.Errorf("checkCreditorReference(%q): got %q, want %q", ref, got, want)
		}
	}
}

func TestParseAmount(t *testing.T) {
	for _, tc := range []struct {
		text  string
		want  string // "" is no amount
		rules []Rule
	}{
		{"", "", nil},
		{"1949.70", "1949.70", nil},
		{"0.01", "0.01", nil},
		{"999999999.99", "999999999.99", nil},
		{"0.00", "0.00", []Rule{NoteNoPayment}},
		{"0", "0.00", []Rule{NoteDecimals, NoteNoPayment}},
		{"250", "250.00", []Rule{NoteDecimals}},
		{"1949.7", "1949.70", []Rule{NoteDecimals}},
		{"1'949.70", "1949.70", []Rule{RuleFormat}},
		{"1’949.70", "1949.70", []Rule{RuleFormat}},
		{"1 949.70", "1949.70", []Rule{RuleFormat}},
		{"1\u00a0949.70", "1949.70", []Rule{RuleFormat}},
		{"12'345'678.90", "12345678.90", []Rule{RuleFormat, RuleLength}},
		{"1949,70", "1949.70", []Rule{RuleFormat}},
		{"1949,7", "1949.70", []Rule{RuleFormat}},
		{"1,949.70", "1949.70", []Rule{RuleFormat}},
		{"1.949,70", "1949.70", []Rule{RuleFormat}},
		{"1.234.567,80", "1234567.80", []Rule{RuleFormat}},
		{"1,234,567.80", "1234567.80", []Rule{RuleFormat}},
		{" 12.00", "12.00", []Rule{RuleFormat}},
		{"12.00 ", "12.00", []Rule{RuleFormat}},
		{"012.00", "12.00", []Rule{RuleFormat}},
		{"00.50", "0.50", []Rule{RuleFormat}},
		{".50", "0.50", []Rule{RuleFormat}},
		{"12.", "12.00", []Rule{RuleFormat}},
		{"+12.00", "12.00", []Rule{RuleFormat}},
		{"-12.00", "-12.00", []Rule{RuleFormat, RuleRange}},
		{"1000000000.00", "1000000000.00", []Rule{RuleRange}},
		{"1,949", "", []Rule{RuleFormat}},
		{"1.949", "", []Rule{RuleFormat}},
		{"12.345", "", []Rule{RuleFormat}},
		{"1,94,9.70", "", []Rule{RuleFormat}},
		{"1'94.70", "", []Rule{RuleFormat}},
		{"'949.70", "", []Rule{RuleFormat}},
		{"1''949.70", "", []Rule{RuleFormat}},
		{"1.2.3", "", []Rule{RuleFormat}},
		{"1,2,3", "", []Rule{RuleFormat}},
		{"12a9.50", "", []Rule{RuleFormat}},
		{"CHF 12.00", "", []Rule{RuleFormat}},
		{"12.00 CHF", "", []Rule{RuleFormat}},
		{"1e3", "", []Rule{RuleFormat}},
		{"0x10", "", []Rule{RuleFormat}},
		{"NaN", "", []Rule{RuleFormat}},
		{".", "", []Rule{RuleFormat}},
		{",", "", []Rule{RuleFormat}},
		{"-", "", []Rule{RuleFormat}},
		{"--5.00", "", []Rule{RuleFormat}},
		{"1-2.00", "", []Rule{RuleFormat}},
		{"١٢.٠٠", "", []Rule{RuleFormat}},
		{"99999999999999999999.00", "", []Rule{RuleFormat}},
		{"   ", "", []Rule{RuleFormat}},
	} {
		amount, rules := parseAmount(tc.text)
		got := ""
		if amount != nil {
			got = amount.String()
		}
		if got != tc.want || !slices.Equal(rules, tc.rules) {
			t.Errorf("parseAmount(%q): got %q %v, want %q %v", tc.text, got, rules, tc.want, tc.rules)
		}
	}
}

func TestSplitTown(t *testing.T) {
	for _, tc := range []struct{ line, country, zip, city string }{
		{"9490 Vaduz", "LI", "9490", "Vaduz"},
		{"8001 Zürich", "CH", "8001", "Zürich"},
		{"8001 Zürich", "", "8001", "Zürich"},
		{"  8001   Zürich  ", "CH", "8001", "Zürich"},
		{"CH-8001 Zürich", "CH", "8001", "Zürich"},
		{"CH- 8001 Zürich", "CH", "8001", "Zürich"},
		{"FL-9490 Vaduz", "LI", "9490", "Vaduz"},
		{"LI-9490 Vaduz", "LI", "9490", "Vaduz"},
		{"D-79540 Lörrach", "DE", "79540", "Lörrach"},
		{"F-68300 Saint-Louis", "FR", "68300", "Saint-Louis"},
		{"A-6900 Bregenz", "AT", "6900", "Bregenz"},
		{"I-20121 Milano", "IT", "20121", "Milano"},
		{"79540 Lörrach", "DE", "79540", "Lörrach"},
		{"6900 Lugano 3 Caselle", "CH", "6900", "Lugano 3 Caselle"},
		{"79540 Lörrach", "CH", "", "79540 Lörrach"},
		{"London SW1A 2AA", "GB", "", "London SW1A 2AA"},
		{"Vaduz", "LI", "", "Vaduz"},
		{"9490", "LI", "", "9490"},
		{"9490Vaduz", "LI", "", "9490Vaduz"},
		{"123 Town", "FR", "", "123 Town"},
		{"123456 Town", "RU", "", "123456 Town"},
		{"D-Town", "DE", "", "D-Town"},
		{"", "CH", "", ""},
	} {
		if zip, city := splitTown(tc.line, tc.country); zip != tc.zip || city != tc.city {
			t.Errorf("splitTown(%q, %q): got %q, %q, want %q, %q", tc.line, tc.country, zip, city, tc.zip, tc.city)
		}
	}
}

func TestParseSwico(t *testing.T) {
	full := "//S1/10/10201409/11/190512/20/1400.000-53/30/106017086/31/180508181231/32/7.7/33/7.7:48.37;2.5:12.4/40/2:10;0:30"
	for _, tc := range []struct {
		raw    string
		want   *Swico
		broken string
	}{
		{full, &Swico{InvoiceNumber: "10201409", InvoiceDate: "2019-05-12", CustomerReference: "1400.000-53", UID: "106017086",
			ServiceDate: "2018-05-08", ServiceEnd: "2018-12-31", VATRates: []Rate{{"7.7", ""}},
			ImportVAT: []Rate{{"7.7", "48.37"}, {"2.5", "12.4"}}, Conditions: []Discount{{"2", 10}, {"0", 30}}, DueDate: "2019-06-11"}, ""},
		{`//S1/10/X.66711\/8824/11/200712/20/MW-2020-04`, &Swico{InvoiceNumber: "X.66711/8824", InvoiceDate: "2020-07-12", CustomerReference: "MW-2020-04"}, ""},
		{`//S1/10/a\\b`, &Swico{InvoiceNumber: `a\b`}, ""},
		{"//S1/11/201409", &Swico{}, "11"},
		{"//S1/11/200230", &Swico{}, "11"},
		{"//S1/11/2007", &Swico{}, "11"},
		{"//S1/30/CHE-106.017.086", &Swico{}, "30"},
		{"//S1/31/181231180508", &Swico{}, "31"},
		{"//S1/32/8:1000;2.5:51.8", &Swico{VATRates: []Rate{{"8", "1000"}, {"2.5", "51.8"}}}, ""},
		{"//S1/32/8:1000;x:51.8", &Swico{}, "32"},
		{"//S1/40/0:30", &Swico{Conditions: []Discount{{"0", 30}}}, ""},
		{"//S1/11/260101/40/0:0", &Swico{InvoiceDate: "2026-01-01", Conditions: []Discount{{"0", 0}}, DueDate: "2026-01-01"}, ""},
		{"//S1/40/0:many", &Swico{}, "40"},
		{"//S1/20/b/10/a", &Swico{CustomerReference: "b", InvoiceNumber: "a"}, "10"},
		{"//S1/01/20170309/10/a", &Swico{InvoiceNumber: "a"}, ""},
		{"//S1/99/x", &Swico{}, ""},
		{"//S1/xx/x", &Swico{}, "xx"},
		{"//S1/10", &Swico{}, "10"},
		{"//S1/10/a/", &Swico{InvoiceNumber: "a"}, ""},
		{"//S1/", &Swico{}, ""},
		{"//XY/10/a", nil, ""},
		{"//S1", nil, ""},
	} {
		got, broken := parseSwico(tc.raw)
		if diff := compare(got, tc.want); diff != "" || strings.Join(broken, " ") != tc.broken {
			t.Errorf("parseSwico(%q): broken %q, want %q\n%s", tc.raw, broken, tc.broken, diff)
		}
	}
}
