package types_test

import (
	"encoding/json"
	"os"
	"testing"

	"kontor/modules/kit/types"
)

func TestRule_HasTextsInEveryLanguage(t *testing.T) {
	for _, l := range []types.Language{types.English, types.German, types.French, types.Italian} {
		data, err := os.ReadFile("../../../locales/" + l.String() + "/kernel.json")
		if err != nil {
			t.Fatal(err)
		}
		var texts map[string]string
		if err := json.Unmarshal(data, &texts); err != nil {
			t.Fatal(err)
		}
		for _, rule := range []types.Rule{
			types.RuleRequired, types.RuleTooLong, types.RuleText, types.RuleCountry, types.RuleAlpha3, types.RuleDate,
			types.RuleLanguage, types.RulePhone, types.RuleEmail, types.RuleID, types.RuleDisplayName,
		} {
			if key, _ := rule.Text(); texts[key] == "" {
				t.Errorf("%s has no text for %s", l, key)
			}
		}
	}
}
