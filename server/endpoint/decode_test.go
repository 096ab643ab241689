package endpoint

import (
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"kontor/server/apierr"
)

type nested struct {
	Name    string             `json:"name"`
	Size    *int64             `json:"size"`
	Parts   []nested           `json:"parts"`
	Address Optional[*address] `json:"address"`
	Raw     jsontext.Value     `json:"raw"`
}

type address struct {
	City string `json:"city"`
	Code int    `json:"code"`
}

func decodeNested(value string) (nested, []string) {
	var target nested
	var problems apierr.Fields
	decode(reflect.ValueOf(&target).Elem(), "in", jsontext.Value(value), &problems)
	return target, slices.Sorted(maps.Keys(maps.Collect(problems.All)))
}

func TestDecode_ReportsAllWrongParts(t *testing.T) {
	for value, want := range map[string]string{
		`{"name":"a","parts":[{"size":1}],"address":{"city":"Bern"}}`: "",
		`{"name":1,"size":"x"}`: "in.name in.size",
		`{"parts":[{"name":1},{"size":2},{"size":"x","parts":7}]}`:                 "in.parts.0.name in.parts.2.parts in.parts.2.size",
		`{"address":{"city":1,"code":"x"},"name":2}`:                               "in.address.city in.address.code in.name",
		`{"address":7,"parts":{}}`:                                                 "in.address in.parts",
		`{"parts":[7,"x",null,{"address":null,"unknown":{"name":1}}],"name":null}`: "in.parts.0 in.parts.1",
		`7`: "in", `[]`: "in", `"x"`: "in", `null`: "",
	} {
		if _, got := decodeNested(value); strings.Join(got, " ") != want {
			t.Errorf("%s: got %v, want %q", value, got, want)
		}
	}
}

func TestDecode_KeepsTheRightParts(t *testing.T) {
	got, _ := decodeNested(`{"name":"a","size":"x","address":{"city":"Bern","code":"x"},"parts":[{"name":"b"},7]}`)
	if got.Name != "a" || got.Size != nil || !got.Address.Given || got.Address.Value.City != "Bern" || len(got.Parts) != 2 || got.Parts[0].Name != "b" {
		t.Errorf("got %+v", got)
	}
}

func TestDecode_BoundsTheReportedParts(t *testing.T) {
	if _, got := decodeNested(`{"parts":[` + strings.Repeat(`7,`, 10_000) + `7]}`); len(got) != maxWrong {
		t.Errorf("got %d problems, want %d", len(got), maxWrong)
	}
}

// Decoding by parts reports a problem exactly for the values that the decoder rejects.
func FuzzDecode(f *testing.F) {
	for _, seed := range []string{`{}`, `{"name":1,"parts":[{"size":"x"},7]}`, `{"address":{"city":1}}`, `[[{}]]`, `{"parts":[null,{"parts":[{"raw":{}}]}]}`, `{"size":1e400}`} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, value string) {
		if !jsontext.Value(value).IsValid() {
			return
		}
		var plain nested
		err := json.Unmarshal([]byte(value), &plain)
		got, problems := decodeNested(value)
		if (err == nil) != (len(problems) == 0) {
			t.Errorf("%s: the decoder says %v, and the problems are %v", value, err, problems)
		}
		if err == nil && !reflect.DeepEqual(got, plain) {
			t.Errorf("%s: got %+v, want %+v", value, got, plain)
		}
	})
}
