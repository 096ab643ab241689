package audit_test

import (
	"database/sql"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"kontor/modules/duty/audit"
	"kontor/server/access"
	"kontor/server/servertest"
	"kontor/store"
	"kontor/store/postgres/postgrestest"
	"kontor/store/storetest"
)

type page struct {
	Data   []audit.Entry  `json:"data"`
	Total  int            `json:"total"`
	People map[string]any `json:"people"`
}

// find returns the page of audit entries that a query selects.
func find(t *testing.T, s *servertest.Server, query string) page {
	t.Helper()
	var found page
	s.Admin().Do("GET", "/v1/audit?"+query, nil).Expect(t, http.StatusOK).Into(t, &found)
	return found
}

func TestEntries_AreListedNewestFirst(t *testing.T) {
	s := servertest.Start(t)
	s.SkipRecordCheck() // the entries are about records that do not exist
	actor, record := store.NewID(), store.NewID()
	writeEntries(t, s.DB,
		store.AuditEntry{Actor: actor, Action: "test.create", RecType: "roles", RecID: record, After: "created"},
		store.AuditEntry{Actor: actor, Action: "rates.set", RecType: "rate_limits", RecID: "GET /v1/Things", After: 5},
		store.AuditEntry{Actor: actor, Action: "test.delete", RecType: "roles", RecID: record, Before: "created"})
	all := find(t, s, "search.actor="+actor)
	if all.Total != 3 || len(all.Data) != 3 {
		t.Fatalf("got %+v", all)
	}
	newest, oldest := all.Data[0], all.Data[2]
	if newest.Action != "test.delete" || newest.AfterHash != "" || newest.BeforeHash != oldest.AfterHash || newest.BeforeHash == "" {
		t.Errorf("newest is %+v", newest)
	}
	if oldest.Actor != actor || oldest.RecID != record || oldest.At != s.DB.Now() || all.Data[1].PrevHash != oldest.Hash || newest.Seq != oldest.Seq+2 {
		t.Errorf("oldest is %+v", oldest)
	}
	for filter, want := range map[string]int{
		"search.rec_id=" + strings.ToUpper(record): 2, "search.rec_id=" + url.QueryEscape("GET /v1/Things"): 1,
		"search.action=test.*": 2, "search.rec_type=ROLES&search.actor=" + actor: 2, fmt.Sprintf("search.seq=%d..%d", oldest.Seq+1, newest.Seq): 2,
		"search.at=2026-01-31&search.actor=" + actor: 3, "search.hash=" + newest.Hash: 1,
	} {
		if found := find(t, s, filter); found.Total != want {
			t.Errorf("%s finds %d, want %d", filter, found.Total, want)
		}
	}
}

// Entries of changes also contain session, network and request. Searches find them as changes.
func TestEntries_OfChangesNameTheirOrigin(t *testing.T) {
	s := servertest.Start(t)
	id := s.Admin().With("X-Request-ID", "4f2a9c1e-77b0-4d3a-9c55-0e8d1b6f2a31").Create("/v1/customers", map[string]any{"first_name": "Vreni", "last_name": "Muster", "email": "v@example.ch"})
	for _, query := range []string{"search.rec_id=" + id, "search.rec_id=" + id + "&search.kind=change", "search.request_id=4f2a9c1e-77b0-4d3a-9c55-0e8d1b6f2a31", "search.rec_id=" + id + "&search.kind=denial,CHANGE"} {
		got := one(t, s, query)
		if got.Kind != "change" || got.SessionID == "" || got.Network != "127.0.0.0/24" || got.RequestID != "4f2a9c1e-77b0-4d3a-9c55-0e8d1b6f2a31" || got.Detail != nil || got.Form != 2 {
			t.Errorf("%s: got %+v", query, got)
		}
		if same := trail(t, s, "search.session_id="+got.SessionID+"&search.rec_id="+id); len(same) != 1 {
			t.Errorf("by session: got %+v", same)
		}
	}
	if found := trail(t, s, "search.kind=denial&search.rec_id="+id); len(found) != 0 {
		t.Errorf("got %+v", found)
	}
}

func TestAccess_NeedsThePermissionToRead(t *testing.T) {
	s := servertest.Start(t)
	customer, clerk := s.User(access.Customer), s.User()
	for _, key := range []string{"GET /v1/audit", "GET /v1/audit/status"} {
		s.Admin().Create("/v1/rbac/grants", map[string]any{"user_id": clerk.UserID, "endpoint": key})
	}
	for _, path := range []string{"/v1/audit", "/v1/audit/status"} {
		servertest.Run(t, s, []servertest.Scenario{
			{Name: path + ": an anonymous caller", Method: "GET", Path: path, Status: 401},
			{Name: path + ": a customer", As: customer, Method: "GET", Path: path, Status: 403},
			{Name: path + ": a grant on the endpoint alone", As: clerk, Method: "GET", Path: path, Status: 403},
			{Name: path + ": an administrator", As: s.Admin(), Method: "GET", Path: path, Status: 200},
		})
	}
}

func status(t *testing.T, s *servertest.Server, query string) audit.Status {
	t.Helper()
	var got audit.Status
	s.Admin().Do("GET", "/v1/audit/status"+query, nil).Expect(t, http.StatusOK).Into(t, &got)
	return got
}

func TestStatus_ReportsTheFirstBadEntry(t *testing.T) {
	s := servertest.Start(t)
	s.Admin()
	writeChanges(t, s.DB, 5)
	before := status(t, s, "")
	want := audit.Status{Entries: before.Entries, VerifiedTo: before.Entries, Complete: true, AppendOnly: true, Since: s.DB.Now(), CheckedAt: s.DB.Now(),
		ExportKeys: s.DB.ExportKeys()}
	if !reflect.DeepEqual(before, want) || before.Entries < 5 {
		t.Errorf("got %+v, want %+v", before, want)
	}
	bad := before.Entries - 2
	tamper(t, s.DB, fmt.Sprintf("UPDATE audit_entries SET actor = 'x' WHERE seq = %d", bad))
	if got := status(t, s, ""); got.FirstBad != nil {
		t.Errorf("a verification that has passed the entry reports %+v", got.FirstBad)
	}
	for _, query := range []string{"?restart=true", ""} {
		got := status(t, s, query)
		if got.AppendOnly {
			t.Errorf("%q: a missing trigger is not reported", query)
		}
		if got.FirstBad == nil || got.FirstBad.Seq != bad || got.FirstBad.Reason == "" || !strings.Contains(got.FirstBad.Message, fmt.Sprint(bad)) ||
			got.VerifiedTo != bad-1 || got.Complete || got.Entries != before.Entries {
			t.Errorf("%q: got %+v", query, got)
		}
	}
}

// An erased trail without its head is not an empty trail.
func TestStatus_ReportsAMissingHead(t *testing.T) {
	s := servertest.Start(t)
	s.Admin()
	for _, statement := range []string{
		"DROP TRIGGER audit_entries_no_delete", "DELETE FROM audit_entries", "DELETE FROM meta WHERE name = 'audit_head'",
	} {
		tamper(t, s.DB, statement)
	}
	got := status(t, s, "?restart=true")
	if got.Complete || got.AppendOnly || got.FirstBad == nil || !strings.Contains(got.FirstBad.Reason, "head is missing") {
		t.Errorf("got %+v", got)
	}
}

// tamper changes the database past the store, while it is open.
func tamper(t *testing.T, db *store.DB, statement string) {
	t.Helper()
	o := storetest.OptionsOf(t, db)
	if o.URL != "" {
		if strings.HasPrefix(statement, "DROP TRIGGER") {
			statement = "" // one statement disables both
		}
		postgrestest.Run(t, o.URL, "ALTER TABLE audit_entries DISABLE TRIGGER USER; "+statement)
		return
	}
	// The jobs of the server write at the same time.
	file, err := sql.Open("sqlite", filepath.Join(o.Dir, "kontor.db")+"?_pragma=busy_timeout(60000)")
	if err != nil {
		t.Fatal(err)
	}
	_, dropped := file.Exec("DROP TRIGGER IF EXISTS audit_entries_no_update")
	_, changed := file.Exec(statement)
	if err := errors.Join(dropped, changed, file.Close()); err != nil {
		t.Fatal(err)
	}
}
