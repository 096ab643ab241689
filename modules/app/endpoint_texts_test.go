package app_test

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"kontor/server/servertest"
)

// The console describes every endpoint that can be granted in its language: in English as the document of the API does.
func TestTable_IsDescribedInTheConsole(t *testing.T) {
	raw, err := os.ReadFile("../../web/i18n/endpoints/en.json") // a test of web compares the languages
	if err != nil {
		t.Fatal(err)
	}
	texts := map[string]string{}
	if err := json.Unmarshal(raw, &texts); err != nil {
		t.Fatal(err)
	}
	known := map[string]bool{}
	for _, e := range servertest.Start(t).Table() {
		if strings.HasPrefix(e.Name, "operations.") {
			continue // needs no grant
		}
		known["endpoint."+e.Name] = true
		if want := strings.TrimSuffix(e.Summary, ".") + "."; texts["endpoint."+e.Name] != want {
			t.Errorf("web/i18n/endpoints: endpoint.%s is %q in English, the summary is %q", e.Name, texts["endpoint."+e.Name], want)
		}
		if _, ok := texts["endpoint_tag."+e.Tag]; !ok {
			t.Errorf("web/i18n/endpoints: there is no text endpoint_tag.%s", e.Tag)
		}
	}
	for key := range texts {
		if strings.HasPrefix(key, "endpoint.") && !known[key] && !strings.HasPrefix(key, "endpoint.sandbox.") {
			t.Errorf("web/i18n/endpoints: %s describes no endpoint", key)
		}
	}
}
