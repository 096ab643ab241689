package value_test

import (
	"encoding/json"
	"os"
	"testing"

	"kontor/modules/value"
)

func TestRule_HasTextsInEveryLanguage(t *testing.T) {
	for _, l := range []value.Language{value.English, value.German, value.French, value.Italian} {
		data, err := os.ReadFile("../../locales/" + l.String() + "/kernel.json")
		if err != nil {
			t.Fatal(err)
		}
		var texts map[string]string
		if err := json.Unmarshal(data, &texts); err != nil {
			t.Fatal(err)
		}
		for _, rule := range []value.Rule{
			value.RuleRequired, value.RuleTooLong, value.RuleText, value.RuleCountry, value.RuleAlpha3, value.RuleDate,
			value.RuleLanguage, value.RulePhone, value.RuleEmail, value.RuleID,
		} {
			if key, _ := rule.Text(); texts[key] == "" {
				t.Errorf("%s has no text for %s", l, key)
			}
		}
	}
}
