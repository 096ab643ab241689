package seed_test

import (
	"maps"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"

	"kontor/modules/developer/playground/seed"
	"kontor/server/servertest"
)

const (
	triggerPath   = "/v1/sandbox/trigger"
	scenariosPath = "/v1/sandbox/scenarios"
)

// withoutScenario are the types of events that a person causes and no scenario plays.
var withoutScenario = map[string]string{
	"identities.created": "it needs a sign-in provider",
	"identities.deleted": "it needs a sign-in provider",
}

type triggered struct {
	Run    int64
	Steps  []struct{ ID, Request string }
	Events []struct{ Type string }
}

// shape is what two runs have in common.
func (t triggered) shape() string {
	var b strings.Builder
	for _, s := range t.Steps {
		b.WriteString(s.ID + " " + s.Request + "\n")
	}
	for _, e := range t.Events {
		b.WriteString(e.Type + "\n")
	}
	return b.String()
}

func TestTrigger_EachScenarioCausesItsEventTwice(t *testing.T) {
	s := servertest.StartSandbox(t, false)
	for _, name := range seed.Scenarios() {
		var first triggered
		for n := range 2 {
			var got triggered
			answer := s.Admin().Do(http.MethodPost, triggerPath, map[string]any{"scenario": name})
			if answer.Status != http.StatusOK {
				t.Errorf("%s: %s", name, answer.Body)
				break
			}
			answer.Into(t, &got)
			if n == 0 {
				first = got
				continue
			}
			if got.Run != first.Run+1 || got.shape() != first.shape() {
				t.Errorf("%s: first\n%s\nthen\n%s", name, first.shape(), got.shape())
			}
			if len(got.Events) == 0 {
				t.Errorf("%s causes no event", name)
			}
			records, _, _ := strings.Cut(name, ".")
			isType := slices.ContainsFunc(eventTypes(t), func(known string) bool { return strings.HasPrefix(known, records+".") })
			if isType && !slices.ContainsFunc(got.Events, func(e struct{ Type string }) bool { return e.Type == name }) {
				t.Errorf("%s does not cause its event:\n%s", name, got.shape())
			}
		}
	}
}

// eventTypes returns the types of events that requests of people cause.
func eventTypes(t *testing.T) []string {
	t.Helper()
	golden, err := os.ReadFile("../../../../testdata/events.golden")
	if err != nil {
		t.Fatal(err)
	}
	types := map[string]bool{}
	for line := range strings.Lines(string(golden)) {
		for _, word := range strings.Fields(line)[2:] {
			if word != "-" {
				types[word] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(types))
}

func TestTrigger_EveryEventHasAScenario(t *testing.T) {
	types := eventTypes(t)
	for _, name := range types {
		known := slices.Contains(seed.Scenarios(), name)
		if _, explained := withoutScenario[name]; known == explained {
			t.Errorf("%s: a scenario %v, explained %v", name, known, explained)
		}
	}
	for name := range withoutScenario {
		if !slices.Contains(types, name) {
			t.Errorf("%s is no event", name)
		}
	}
	if len(types) < 30 {
		t.Errorf("only %d types of events were read", len(types))
	}
}

func TestTrigger_ListsScenariosInTheLanguageOfTheCaller(t *testing.T) {
	s := servertest.StartSandbox(t, false)
	for language, want := range map[string]string{"en": "an advisor verifies them", "de": "eine Beraterin bestätigt sie", "fr": "une conseillère les valide", "it": "una consulente li verifica"} {
		var list seed.ScenarioList
		s.Admin().With("Accept-Language", language).Do(http.MethodGet, scenariosPath, nil).Expect(t, http.StatusOK).Into(t, &list)
		if len(list.Data) != len(seed.Scenarios()) {
			t.Fatalf("%d scenarios", len(list.Data))
		}
		for _, one := range list.Data {
			if one.Summary == "" || strings.HasPrefix(one.Summary, "scenario.") {
				t.Errorf("%s: %s has no text", language, one.Name)
			}
			if one.Name == "kyc.approved" && (!strings.Contains(one.Summary, want) || len(one.Values) != 1 || one.Values[0].Name != "customer.country") {
				t.Errorf("%s: %+v", language, one)
			}
		}
	}
}

func TestTrigger_TakesValues(t *testing.T) {
	s := servertest.StartSandbox(t, false)
	var got struct {
		Steps []struct {
			ID       string
			RecordID string `json:"record_id"`
		}
	}
	s.Admin().Do(http.MethodPost, triggerPath, map[string]any{"scenario": "customers.created", "set": map[string]string{"customer.country": "DEU"}}).
		Expect(t, http.StatusOK).Into(t, &got)
	if customer := s.Admin().Do(http.MethodGet, "/v1/customers/"+got.Steps[0].RecordID, nil).JSON(t); customer["nationality"] != "DEU" {
		t.Errorf("%v", customer)
	}
	for field, body := range map[string]map[string]any{
		"scenario": {"scenario": "kyc.forgotten"},
		"set":      {"scenario": "kyc.approved", "set": map[string]string{"customer.id": "x"}},
	} {
		answer := s.Admin().Do(http.MethodPost, triggerPath, body)
		answer.ExpectError(t, http.StatusBadRequest, "common.invalid_input")
		if details := answer.JSON(t)["details"].(map[string]any); details[field] == nil {
			t.Errorf("%s: %s", field, answer.Body)
		}
	}
	s.Admin().Do(http.MethodPost, triggerPath, map[string]any{"scenario": "customers.created", "set": map[string]string{"customer.country": "Atlantis"}}).
		ExpectError(t, http.StatusUnprocessableEntity, "sandbox.step_failed")
}
