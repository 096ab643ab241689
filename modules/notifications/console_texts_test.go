package notifications_test

import (
	"os"
	"testing"

	"github.com/go-json-experiment/json"

	"kontor/locales"
	"kontor/modules/notifications"
)

// TestConsole_HasANameForEachEvent looks up the keys that the console derives from the names of events.
func TestConsole_HasANameForEachEvent(t *testing.T) {
	for _, lang := range locales.Languages() {
		text, err := os.ReadFile("../../web/i18n/" + lang + ".json")
		if err != nil {
			t.Fatal(err)
		}
		var texts map[string]any
		if err := json.Unmarshal(text, &texts); err != nil {
			t.Fatal(err)
		}
		for kind := range notifications.Channels() {
			if key := "event." + string(kind); texts[key] == nil {
				t.Errorf("web/i18n/%s.json lacks %s", lang, key)
			}
		}
	}
}
