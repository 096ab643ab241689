package notifications_test

import (
	"os"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"

	"kontor/locales"
	"kontor/modules/reach/notifications"
)

// TestConsole_ListsEachEvent checks that the lists of the console contain each event: the filter of notifications and the icons.
func TestConsole_ListsEachEvent(t *testing.T) {
	for _, file := range []string{"notifications.js", "activity.js"} {
		text, err := os.ReadFile("../../../web/app/screens/" + file)
		if err != nil {
			t.Fatal(err)
		}
		for kind := range notifications.Channels() {
			if !strings.Contains(string(text), "'"+string(kind)+"'") && !strings.Contains(string(text), " "+string(kind)+": '") {
				t.Errorf("web/app/screens/%s lacks %s", file, kind)
			}
		}
	}
}

// TestConsole_HasANameForEachEvent checks the keys that the console derives from the names of events.
func TestConsole_HasANameForEachEvent(t *testing.T) {
	for _, lang := range locales.Languages() {
		text, err := os.ReadFile("../../../web/i18n/" + lang + ".json")
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
