package audit_test

import (
	"context"
	"database/sql"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/gofiber/fiber/v2"

	"kontor/locales"
	"kontor/modules/audit"
	"kontor/server"
	"kontor/server/access"
	"kontor/server/apierr"
	"kontor/server/servertest"
	"kontor/store"
	"kontor/store/storetest"
)

// tokens knows an administrator, somebody who may call the endpoints, and anybody.
type tokens struct{}

func (tokens) Known(string) (*access.Caller, bool) { return nil, false }

func (tokens) APIKey(context.Context, string) (*access.Caller, error) {
	return nil, apierr.Unauthorized
}

func (tokens) Bearer(c *fiber.Ctx) (*access.Caller, error) {
	switch user := strings.TrimPrefix(c.Get("Authorization"), "Bearer "); user {
	case "root":
		return &access.Caller{UserID: user, Roles: []string{access.Administrator}}, nil
	case "clerk", "stranger":
		return &access.Caller{UserID: user}, nil
	}
	return nil, apierr.Unauthorized
}

func open(t *testing.T) (db *store.DB, dir string) {
	t.Helper()
	dir = storetest.Dir(t)
	db, err := store.Open(t.Context(), store.Options{Dir: dir, Clock: storetest.NewClock()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db, dir
}

// serve starts a server and gives its address.
func serve(t *testing.T, db *store.DB) string {
	t.Helper()
	texts, err := locales.Load()
	if err != nil {
		t.Fatal(err)
	}
	policy := &access.Current{}
	policy.Store(access.NewPolicy(access.PolicyData{
		Endpoints: map[string][]string{"clerk": {"GET /v1/audit", "GET /v1/audit/status"}},
	}))
	_, address := servertest.Serve(t, server.Options{
		Endpoints: audit.New(db, texts, slog.New(slog.DiscardHandler)).Endpoints(), Auth: tokens{}, Policy: policy, Texts: texts, Now: db.Clock().Now, Log: slog.New(slog.DiscardHandler),
	})
	return "http://" + address
}

func get(t *testing.T, user, url string, into any) int {
	t.Helper()
	request, err := http.NewRequest("GET", url, nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+user)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err == nil {
		err = json.Unmarshal(text, into)
	}
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return response.StatusCode
}

func change(t *testing.T, db *store.DB, entries ...store.AuditEntry) {
	t.Helper()
	err := db.InTx(t.Context(), func(tx *store.Tx) error {
		for _, e := range entries {
			tx.Audit(e)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

type page struct {
	Data  []audit.Entry `json:"data"`
	Total int           `json:"total"`
	Code  string        `json:"code"`
}

func TestAudit_ListsTheTrailNewestFirst(t *testing.T) {
	db, _ := open(t)
	url := serve(t, db) + "/v1/audit"
	actor, record := store.NewID(), store.NewID()
	change(t, db,
		store.AuditEntry{Actor: actor, Action: "roles.create", RecType: "roles", RecID: record, After: "made"},
		store.AuditEntry{Actor: store.NewID(), Action: "rate_limits.set", RecType: "rate_limits", RecID: "GET /v1/Things", After: 5},
		store.AuditEntry{Actor: actor, Action: "roles.delete", RecType: "roles", RecID: record, Before: "made"})
	var all page
	if status := get(t, "root", url, &all); status != 200 || all.Total != 3 || len(all.Data) != 3 {
		t.Fatalf("got %d, %+v", status, all)
	}
	newest, oldest := all.Data[0], all.Data[2]
	if newest.Seq != 3 || newest.Action != "roles.delete" || newest.AfterHash != "" || newest.BeforeHash != oldest.AfterHash || newest.BeforeHash == "" {
		t.Errorf("newest is %+v", newest)
	}
	if oldest.Actor != actor || oldest.RecID != record || oldest.At != db.Now() || all.Data[1].PrevHash != oldest.Hash {
		t.Errorf("oldest is %+v", oldest)
	}
	for filter, want := range map[string]int{
		"search.actor=" + actor: 2, "search.rec_id=" + strings.ToUpper(record): 2, "search.rec_id=GET%20/v1/Things": 1,
		"search.action=roles.*": 2, "search.rec_type=ROLES": 2, "search.seq=2..": 2, "search.at=2026-01-31": 3, "search.hash=" + newest.Hash: 1,
	} {
		var found page
		if get(t, "root", url+"?"+filter, &found); found.Total != want {
			t.Errorf("%s finds %d, want %d", filter, found.Total, want)
		}
	}
}

func TestAudit_NeedsTheRightToRead(t *testing.T) {
	db, _ := open(t)
	address := serve(t, db)
	for _, path := range []string{"/v1/audit", "/v1/audit/status"} {
		for user, want := range map[string]int{"nobody": 401, "stranger": 403, "clerk": 403, "root": 200} {
			var answer page
			if status := get(t, user, address+path, &answer); status != want {
				t.Errorf("%s %s: got %d %s, want %d", user, path, status, answer.Code, want)
			}
		}
	}
}

func TestStatus_NamesTheFirstBadEntry(t *testing.T) {
	db, dir := open(t)
	url := serve(t, db) + "/v1/audit/status"
	for range 5 {
		change(t, db, store.AuditEntry{Actor: store.NilID, Action: "test", RecType: "roles", RecID: store.NewID()})
	}
	status := func(query string) audit.Status {
		t.Helper()
		var s audit.Status
		if code := get(t, "root", url+query, &s); code != 200 {
			t.Fatalf("got %d", code)
		}
		return s
	}
	whole := audit.Status{Entries: 5, VerifiedTo: 5, Complete: true, AppendOnly: true, Since: db.Now(), CheckedAt: db.Now()}
	if got := status(""); got != whole {
		t.Errorf("got %+v, want %+v", got, whole)
	}
	tamper(t, dir, "UPDATE audit_entries SET actor = 'somebody else' WHERE seq = 3")
	if got := status(""); got.FirstBad != nil {
		t.Errorf("a walk that went by sees %+v", got.FirstBad)
	}
	for _, query := range []string{"?restart=true", ""} {
		got := status(query)
		if got.AppendOnly {
			t.Errorf("%q: a dropped trigger goes unnoticed", query)
		}
		if got.FirstBad == nil || got.FirstBad.Seq != 3 || got.FirstBad.Reason == "" || !strings.Contains(got.FirstBad.Message, "3") || got.VerifiedTo != 2 || got.Complete || got.Entries != 5 {
			t.Errorf("%q: got %+v", query, got)
		}
	}
}

// tamper changes the database behind the store's back.
func tamper(t *testing.T, dir, statement string) {
	t.Helper()
	db, err := sql.Open("sqlite", filepath.Join(dir, "kontor.db"))
	if err != nil {
		t.Fatal(err)
	}
	_, dropped := db.Exec("DROP TRIGGER IF EXISTS audit_entries_no_update")
	_, changed := db.Exec(statement)
	if err := errors.Join(dropped, changed, db.Close()); err != nil {
		t.Fatal(err)
	}
}

// A trail that was erased with its head is no empty trail.
func TestStatus_NamesAMissingHead(t *testing.T) {
	db, dir := open(t)
	url := serve(t, db) + "/v1/audit/status?restart=true"
	for range 5 {
		change(t, db, store.AuditEntry{Actor: store.NilID, Action: "test", RecType: "roles", RecID: store.NewID()})
	}
	tamper(t, dir, "DROP TRIGGER audit_entries_no_delete")
	tamper(t, dir, "DELETE FROM audit_entries")
	tamper(t, dir, "DELETE FROM meta WHERE name = 'audit_head'")
	var s audit.Status
	if code := get(t, "root", url, &s); code != 200 || s.Complete || s.AppendOnly || s.FirstBad == nil || !strings.Contains(s.FirstBad.Reason, "head is missing") {
		t.Errorf("got %d, %+v", code, s)
	}
}
