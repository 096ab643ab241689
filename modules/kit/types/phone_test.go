package types_test

import (
	"regexp"
	"testing"

	"kontor/modules/kit/types"
)

func TestParsePhone(t *testing.T) {
	for in, want := range map[string]types.Phone{
		"+41446681800": "+41446681800", "044 668 18 00": "+41446681800", "0041 44 668 18 00": "+41446681800",
		"+41 (0)44 668 18 00": "+41446681800", "079/123.45.67": "+41791234567", "+49 30 123456": "+4930123456",
		"+39 06 698 1234": "+39066981234", "+423 237 74 00": "+4232377400", "+1 212-555-0123": "+12125550123",
		"": "", "hello": "", "123": "", "+41": "", "+999123456789": "", "044 668 18": "", "+41446681800 ext. 5": "",
		"044 668 18 00;ext=5": "", "1-800-FLOWERS": "", "+41\x00446681800": "", "tel:+41446681800": "",
		"+4144668180000000000000000000000000000000000000000000000000000000000000000": "",
	} {
		got, err := types.ParsePhone(in)
		if got != want || (err == nil) != (want != "") {
			t.Errorf("ParsePhone(%q) = %q, %v; want %q", in, got, err, want)
		}
	}
}

var e164 = regexp.MustCompile(`^\+[1-9][0-9]{1,16}$`)

func FuzzParsePhone(f *testing.F) {
	for _, s := range []string{"044 668 18 00", "+49 (0)30 123456", "00", "+", "((((", "+800 1234 5678", "+54 9 11 1234-5678", "+52 1 55 1234 5678", "+1 (242) 365 1234",
		"4144 668 18 00", "+0041 44 668 18 00", "+39 06 698 1234", "+44 7700 900123", "+55 0 11 91234-5678"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, in string) {
		p, err := types.ParsePhone(in)
		if err != nil {
			return
		}
		if !e164.MatchString(p.String()) {
			t.Errorf("ParsePhone(%q) = %q", in, p)
		}
		if again, err := types.ParsePhone(p.String()); err != nil || again != p {
			t.Errorf("%q parsed again: %q, %v", p, again, err)
		}
	})
}
