package types_test

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/nyaruka/phonenumbers"

	"kontor/modules/kit/types"
)

var update = flag.Bool("update", false, "write phone_plans.txt.gz anew, from the metadata of the library")

const plansFile = "phone_plans.txt.gz"

// TestPhonePlans compares the plans with the metadata of the library. After an update of the library, run it with -update.
func TestPhonePlans(t *testing.T) {
	var file strings.Builder
	for _, m := range plansOfLibrary(t) {
		writePlan(&file, m)
	}
	if *update {
		packed := &bytes.Buffer{}
		w, err := gzip.NewWriterLevel(packed, gzip.BestCompression)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(w, file.String()); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(plansFile, packed.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	packed, err := os.Open(plansFile)
	if err != nil {
		t.Fatal(err)
	}
	defer packed.Close()
	plain, err := gzip.NewReader(packed)
	if err != nil {
		t.Fatal(err)
	}
	have, err := io.ReadAll(plain)
	if err != nil {
		t.Fatal(err)
	}
	if string(have) != file.String() {
		t.Errorf("%s is not made of the metadata of this version of the library: run this test with -update", plansFile)
	}
	source, err := os.ReadFile("phone_plans.md")
	if err != nil {
		t.Fatal(err)
	}
	if digest := fmt.Sprintf("%x", sha256.Sum256(have)); !strings.Contains(string(source), digest) {
		t.Errorf("phone_plans.md lacks the digest %s: enter it with the versions of the source", digest)
	}
}

// plansOfLibrary returns the metadata in the order of country codes, and of the main regions first.
func plansOfLibrary(t *testing.T) []*phonenumbers.PhoneMetadata {
	t.Helper()
	collection, err := phonenumbers.MetadataCollection()
	if err != nil {
		t.Fatal(err)
	}
	all := collection.GetMetadata()
	slices.SortStableFunc(all, func(a, b *phonenumbers.PhoneMetadata) int {
		if a.GetCountryCode() != b.GetCountryCode() {
			return int(a.GetCountryCode() - b.GetCountryCode())
		}
		order := phonenumbers.GetRegionCodesForCountryCode(int(a.GetCountryCode()))
		return slices.Index(order, a.GetId()) - slices.Index(order, b.GetId())
	})
	return all
}

func writePlan(file *strings.Builder, m *phonenumbers.PhoneMetadata) {
	general := m.GetGeneralDesc()
	fields := []string{
		fmt.Sprint(m.GetCountryCode()), m.GetId(), m.GetLeadingDigits(), m.GetNationalPrefixForParsing(), m.GetNationalPrefixTransformRule(),
		lengths(general.GetPossibleLength()), lengths(general.GetPossibleLengthLocalOnly()), general.GetNationalNumberPattern(),
	}
	for _, d := range descriptions(m) {
		fields = append(fields, lengths(d.GetPossibleLength())+":"+d.GetNationalNumberPattern())
	}
	file.WriteString(strings.Join(fields, "\t") + "\n")
}

// descriptions returns the kinds of numbers that a country has, each once.
func descriptions(m *phonenumbers.PhoneMetadata) (all []*phonenumbers.PhoneNumberDesc) {
	seen := map[string]bool{}
	for _, d := range []*phonenumbers.PhoneNumberDesc{
		m.GetFixedLine(), m.GetMobile(), m.GetPremiumRate(), m.GetTollFree(), m.GetSharedCost(), m.GetVoip(), m.GetPersonalNumber(),
		m.GetPager(), m.GetUan(), m.GetVoicemail(),
	} {
		key := lengths(d.GetPossibleLength()) + ":" + d.GetNationalNumberPattern()
		if d.GetNationalNumberPattern() == "" || slices.Contains(d.GetPossibleLength(), -1) || seen[key] {
			continue
		}
		seen[key] = true
		all = append(all, d)
	}
	return all
}

func lengths(numbers []int32) string { return strings.Trim(fmt.Sprint(numbers), "[]") }

// TestParsePhone_DecidesAsTheLibrary compares numbers of all countries: examples of the library, with digits that are replaced,
// added and removed, and written in several ways.
func TestParsePhone_DecidesAsTheLibrary(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	accepted, compared := 0, 0
	for _, m := range plansOfLibrary(t) {
		for _, d := range append(descriptions(m), m.GetGeneralDesc()) {
			numbers := variants(random, d.GetExampleNumber())
			for _, length := range m.GetGeneralDesc().GetPossibleLength() {
				numbers = append(numbers, digits(random, int(length)))
			}
			for _, national := range numbers {
				for _, text := range written(m, national) {
					want := libraryPhone(text)
					got, err := types.ParsePhone(text)
					if compared++; string(got) != want || (err == nil) != (want != "") {
						t.Errorf("%s: ParsePhone(%q) = %q, %v; the library: %q", m.GetId(), text, got, err, want)
					}
					if want != "" {
						accepted++
					}
				}
			}
		}
	}
	if accepted < compared/10 {
		t.Errorf("only %d of %d numbers were valid: the comparison shows too little", accepted, compared)
	}
}

func digits(random *rand.Rand, n int) string {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte('0' + random.IntN(10))
	}
	return string(b)
}

// variants returns a number, and numbers that resemble it.
func variants(random *rand.Rand, number string) []string {
	if number == "" {
		return nil
	}
	all := []string{number, number + digits(random, 1), number[1:]}
	for range 2 {
		b := []byte(number)
		b[random.IntN(len(b))] = byte('0' + random.IntN(10))
		all = append(all, string(b))
	}
	return all
}

// written returns ways to write a number.
func written(m *phonenumbers.PhoneMetadata, national string) []string {
	code := fmt.Sprint(m.GetCountryCode())
	return []string{
		"+" + code + national, "00" + code + " " + national, code + national, "0" + national,
		"+00" + code + national, "(+" + code + ") (" + m.GetNationalPrefix() + ") " + national + ".",
	}
}

// libraryPhone returns what the library makes of a number, or "".
func libraryPhone(text string) string {
	n, err := phonenumbers.Parse(text, "CH")
	if err != nil || n.GetExtension() != "" || !phonenumbers.IsValidNumber(n) {
		return ""
	}
	return phonenumbers.Format(n, phonenumbers.E164)
}
