package endpoint_test

import (
	"strings"
	"testing"

	"github.com/go-json-experiment/json"

	"kontor/server/endpoint"
)

func FuzzJSONSize(f *testing.F) {
	for _, seed := range []string{"", "Grüezi", `"\\`, "a\nb\tc\r\x00\x1f\x7f", "<&>\u2028"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		text = strings.ToValidUTF8(text, "")
		encoded, err := json.Marshal(text)
		if err != nil {
			t.Fatal(err)
		}
		if got := endpoint.JSONSize(text); got != len(encoded) {
			t.Errorf("%q: got %d, want %d", text, got, len(encoded))
		}
	})
}
