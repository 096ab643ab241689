package app_test

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"kontor/modules/app"
	"kontor/modules/kit/change"
	"kontor/modules/reach/changes"
	"kontor/server/access"
	"kontor/server/endpoint"
	"kontor/server/servertest"
)

const goldenEvents = "../../testdata/events.golden"

// TestEvents_EveryChangeIsOne lists the types of events that each endpoint causes. An endpoint that changes a record must cause one:
// no module can change a record without an audit entry, and the source of each type of entry must be decided.
func TestEvents_EveryChangeIsOne(t *testing.T) {
	s := newScenario(t)
	administrator := &access.Caller{UserID: s.admin.UserID, Roles: []string{access.Administrator}}
	everything := access.With(t.Context(), administrator.WithPolicy(s.server.Policy.Load()))
	var last change.Position
	s.asked = func() {
		var err error
		if last, err = s.server.Changes.Latest(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	caused := map[string]map[string]bool{}
	s.answered = func(e endpoint.Endpoint, _ string, _ servertest.Response) {
		b, err := s.server.Changes.After(everything, changes.Query{After: last, Limit: 1000})
		if err != nil {
			t.Fatal(err)
		}
		if caused[e.Key()] == nil {
			caused[e.Key()] = map[string]bool{}
		}
		for _, event := range b.Events {
			caused[e.Key()][event.Type] = true
		}
	}
	s.run()
	var b strings.Builder
	for _, e := range s.server.Table() {
		if e.Method == "GET" || e.Access.IsPublic() {
			continue
		}
		types := slices.Sorted(maps.Keys(caused[e.Key()]))
		if len(types) == 0 {
			types = []string{"-"}
		}
		fmt.Fprintf(&b, "%-75s %s\n", e.Key(), strings.Join(types, " "))
	}
	if *update {
		if err := os.WriteFile(goldenEvents, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(goldenEvents)
	if err != nil {
		t.Fatal(err)
	}
	if got := b.String(); got != string(want) {
		t.Errorf("the events of endpoints have changed; run \"make golden\" and review the difference:\n%s", changedLines(string(want), got))
	}
}

// TestEvents_EveryRecordTypeIsDecided fails for a record type of the audit trail that is neither published nor left out with a
// reason.
func TestEvents_EveryRecordTypeIsDecided(t *testing.T) {
	for _, p := range app.Proofs() {
		if !changes.Decided(p.Type) {
			t.Errorf("%s: add it to the sources in modules/reach/changes/sources.go", p.Type)
		}
	}
	for _, recordType := range access.RecordTypes() {
		published := slices.ContainsFunc(changes.Types(), func(text string) bool { return strings.HasPrefix(text, recordType.Name+".") })
		if !published && !changes.Decided(recordType.Name) {
			t.Errorf("%s: add it to the sources in modules/reach/changes/sources.go", recordType)
		}
	}
}
