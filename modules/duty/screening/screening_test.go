package screening_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"log/slog"
	"mime/multipart"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"kontor/modules/duty/screening"
	"kontor/modules/duty/screening/lists"
	"kontor/server/access"
	"kontor/server/servertest"
	"kontor/server/settings"
	"kontor/store/storetest"
	"kontor/store/testenv"
)

// header is that of OpenSanctions' targets.simple.csv. Its lines here are invented.
const header = `"id","schema","name","aliases","birth_date","countries","addresses","identifiers","sanctions","phones","emails","dataset","first_seen","last_seen","last_change"` + "\n"

// line is an entry of targets.simple.csv.
func line(id, schema, name, births, countries string) string {
	return fmt.Sprintf("%q,%q,%q,\"\",%q,%q,\"\",\"\",\"Invented\",\"\",\"\",\"Sample\",\"2024-01-01\",\"2026-03-01\",\"2026-03-01T10:00:00\"\n", id, schema, name, births, countries)
}

const path = "/v1/screening/lists"

// load sends a list.
func load(t testing.TB, c *servertest.Client, name, content string) servertest.Response {
	t.Helper()
	return send(t, c, func(w *multipart.Writer) {
		part, err := w.CreateFormFile("file", "list.csv")
		if err != nil {
			t.Fatal(err)
		}
		part.Write([]byte(content)) // it is a buffer
		w.WriteField("name", name)  // the same
	})
}

func send(t testing.TB, c *servertest.Client, write func(w *multipart.Writer)) servertest.Response {
	t.Helper()
	var body bytes.Buffer
	w := multipart.NewWriter(&body)
	write(w)
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return c.With("Content-Type", w.FormDataContentType()).Do("POST", path, body.Bytes())
}

type match struct {
	EntryID     string `json:"entry_id"`
	List        string
	SourceID    string `json:"source_id"`
	Name, Type  string
	Score       float64
	Programs    []string
	DateOfBirth *string `json:"date_of_birth"`
	Countries   []string
	Matched     []struct {
		Query, Entry string
		Score        float64
	}
}

type result struct {
	Matches []match
	Lists   []struct {
		Name, Version string
		Entries       int64
	}
}

type object = map[string]any

func check(t testing.TB, c *servertest.Client, body object) result {
	t.Helper()
	var r result
	c.Do("POST", "/v1/screening/check", body).Expect(t, http.StatusOK).Into(t, &r)
	return r
}

const sample = header

var people = sample + line("P1", "Person", "Viktor Beispielow", "1960-05-17", "ru;su") + line("P2", "Person", "Hans Zufall", "1970", "ch") +
	line("C1", "Company", "Zufall Handels AG", "", "ch")

func TestCheck_FindsEntriesWithEvidence(t *testing.T) {
	s := servertest.Start(t)
	advisor := s.User(access.Advisor)
	if r := check(t, advisor, object{"name": "Viktor Beispielow"}); len(r.Matches) != 0 || len(r.Lists) != 0 {
		t.Fatalf("without lists: %+v", r)
	}
	load(t, s.Admin(), "Sample", people).Expect(t, http.StatusCreated)
	r := check(t, advisor, object{"name": "BEISPIELOV, Viktor", "type": "individual", "date_of_birth": "1960-05-17", "country": "RUS"})
	if len(r.Matches) != 1 || len(r.Lists) != 1 || r.Lists[0].Name != "Sample" || r.Lists[0].Entries != 3 {
		t.Fatalf("got %+v", r)
	}
	m := r.Matches[0]
	if m.SourceID != "P1" || m.List != "Sample" || m.Name != "Viktor Beispielow" || m.Type != "individual" || m.Score < 0.8 || len(m.Matched) != 2 ||
		m.DateOfBirth == nil || *m.DateOfBirth != "1960-05-17" || strings.Join(m.Countries, ",") != "RUS" {
		t.Errorf("got %+v", m)
	}
	if other := check(t, advisor, object{"name": "Viktor Beispielow", "date_of_birth": "1999-01-01", "country": "CH", "threshold": 0.1}); len(other.Matches) == 0 || other.Matches[0].Score >= 0.9 {
		t.Errorf("contradictions do not lower the score: %+v", other)
	}
	if r := check(t, advisor, object{"name": "Zufall Handels", "type": "individual"}); slicesContain(r, "C1") {
		t.Errorf("a company was compared with a person: %+v", r)
	}
	if r := check(t, advisor, object{"name": "Hans Zufall", "threshold": 0.2, "limit": 1}); len(r.Matches) != 1 || r.Matches[0].SourceID != "P2" || *r.Matches[0].DateOfBirth != "1970" {
		t.Errorf("limit: %+v", r)
	}
}

func slicesContain(r result, id string) bool {
	for _, m := range r.Matches {
		if m.SourceID == id {
			return true
		}
	}
	return false
}

func TestLoad_ReplacesInOneStepAndSaysWhatChanged(t *testing.T) {
	s := servertest.Start(t)
	admin := s.Admin()
	first := load(t, admin, "Sample", people).Expect(t, http.StatusCreated).JSON(t)
	if first["added"] != 3.0 || first["changed"] != 0.0 || first["removed"] != 0.0 || first["entries"] != 3.0 || first["format"] != "opensanctions" {
		t.Fatalf("got %v", first)
	}
	sum := sha256.Sum256([]byte(people))
	if first["sha256"] != hex.EncodeToString(sum[:]) || first["size"] != float64(len(people)) {
		t.Errorf("digest: %v", first)
	}
	id := check(t, admin, object{"name": "Hans Zufall"}).Matches[0].EntryID
	newer := sample + line("P2", "Person", "Hans Zufall", "1971", "ch") + line("C1", "Company", "Zufall Handels AG", "", "ch") + line("P3", "Person", "Neu Hinzugefuegt", "", "")
	second := load(t, admin, " sample ", newer).Expect(t, http.StatusCreated).JSON(t)
	if second["id"] != first["id"] || second["added"] != 1.0 || second["changed"] != 1.0 || second["removed"] != 1.0 || second["entries"] != 3.0 ||
		second["created_at"] != first["created_at"] {
		t.Errorf("got %v", second)
	}
	if r := check(t, admin, object{"name": "Viktor Beispielow"}); len(r.Matches) != 0 {
		t.Errorf("a removed entry matches: %+v", r)
	}
	if r := check(t, admin, object{"name": "Hans Zufall"}); len(r.Matches) != 1 || r.Matches[0].EntryID != id || *r.Matches[0].DateOfBirth != "1971" {
		t.Errorf("the changed entry: %+v, want the id %s", r, id)
	}
	third := load(t, admin, "Sample", newer).Expect(t, http.StatusCreated).JSON(t)
	if third["added"] != 0.0 || third["changed"] != 0.0 || third["removed"] != 0.0 {
		t.Errorf("the same file: %v", third)
	}
	admin.Do("DELETE", path+"/"+first["id"].(string), nil).Expect(t, http.StatusOK)
	if r := check(t, admin, object{"name": "Hans Zufall"}); len(r.Matches) != 0 || len(r.Lists) != 0 {
		t.Errorf("after the list was dropped: %+v", r)
	}
	admin.Do("DELETE", path+"/"+first["id"].(string), nil).ExpectError(t, http.StatusNotFound, "screening.list_not_found")
}

// A file that cannot be read leaves the former list in force, also one that fails after many entries, and the next load is right.
func TestLoad_KeepsTheFormerListAfterAnError(t *testing.T) {
	s := servertest.Start(t)
	admin := s.Admin()
	var long strings.Builder
	long.WriteString(sample)
	for i := range 1200 { // more than two transactions
		long.WriteString(line(fmt.Sprintf("N%d", i), "Person", fmt.Sprintf("Nummer Erfunden%d", i), "", ""))
	}
	var broken strings.Builder
	for i := range 1200 {
		fmt.Fprintf(&broken, `{"id":"B%d","schema":"Person","target":true,"properties":{"name":["Nummer Kaputt%d"]}}`+"\n", i, i)
	}
	load(t, admin, "Sample", people).Expect(t, http.StatusCreated)
	for name, c := range map[string]struct{ content, text string }{
		"damaged":   {broken.String() + `{"id":`, "damaged"},
		"unknown":   {"hello", "known formats"},
		"empty":     {sample, "no entries"},
		"delta":     {`<?xml version="1.0"?><swiss-sanctions-list list-type="delta" date="2026-01-01"/>`, ""},
		"entities":  {`<?xml version="1.0"?><!DOCTYPE x [<!ENTITY a "b">]><CONSOLIDATED_LIST/>`, "damaged"},
		"no file":   {"", ""},
		"cut":       {people[:len(people)-30], "damaged"},
		"no schema": {"\"id\",\"name\"\n\"1\",\"x\"\n", ""},
	} {
		r := load(t, admin, "Sample", c.content)
		r.ExpectError(t, http.StatusBadRequest, "common.invalid_input")
		if !strings.Contains(r.Body, `"file"`) || !strings.Contains(r.Body, c.text) {
			t.Errorf("%s: %s", name, r.Body)
		}
	}
	if r := check(t, admin, object{"name": "Viktor Beispielow"}); len(r.Matches) != 1 || r.Lists[0].Entries != 3 {
		t.Errorf("the former list: %+v", r)
	}
	got := load(t, admin, "Sample", long.String()).Expect(t, http.StatusCreated).JSON(t)
	if got["added"] != 1200.0 || got["removed"] != 3.0 || got["entries"] != 1200.0 {
		t.Errorf("after the errors: %v", got)
	}
	back := load(t, admin, "Sample", people).Expect(t, http.StatusCreated).JSON(t)
	if back["added"] != 3.0 || back["removed"] != 1200.0 {
		t.Errorf("back: %v", back)
	}
	if r := check(t, admin, object{"name": "Nummer Erfunden7"}); len(r.Matches) != 0 {
		t.Errorf("a removed entry matches: %+v", r)
	}
}

// An id that occurs twice in a file loses no name.
func TestLoad_KeepsEntriesWithTheSameID(t *testing.T) {
	s := servertest.Start(t)
	admin := s.Admin()
	twice := sample + line("X", "Person", "Erste Person", "", "") + line("X", "Person", "Zweite Namensvetterin", "", "")
	load(t, admin, "Sample", twice).Expect(t, http.StatusCreated)
	if r := check(t, admin, object{"name": "Zweite Namensvetterin"}); len(r.Matches) != 1 || r.Matches[0].SourceID != "X" {
		t.Errorf("got %+v", r)
	}
	got := load(t, admin, "Sample", sample+line("X", "Person", "Erste Person", "", "")).Expect(t, http.StatusCreated).JSON(t)
	if got["removed"] != 1.0 || got["changed"] != 0.0 {
		t.Errorf("got %v", got)
	}
}

func TestLoad_RejectsWrongForms(t *testing.T) {
	temporary := t.TempDir() // other processes have temporary files, too
	t.Setenv("TMPDIR", temporary)
	s := servertest.Start(t)
	admin := s.Admin()
	for name, c := range map[string]struct {
		write func(w *multipart.Writer)
		field string
	}{
		"nothing": {func(*multipart.Writer) {}, "name"},
		"no name": {func(w *multipart.Writer) { part(w, people) }, "name"},
		"two files": {func(w *multipart.Writer) {
			w.WriteField("name", "a")
			part(w, people)
			part(w, people)
		}, "file"},
		"a long name": {func(w *multipart.Writer) { w.WriteField("name", strings.Repeat("x", 101)); part(w, people) }, "name"},
		"a huge name": {func(w *multipart.Writer) { w.WriteField("name", strings.Repeat("x", 1<<20)); part(w, people) }, "name"},
		"a bad name":  {func(w *multipart.Writer) { w.WriteField("name", "a\u202eb"); part(w, people) }, "name"},
	} {
		r := send(t, admin, c.write)
		r.ExpectError(t, http.StatusBadRequest, "common.invalid_input")
		if !strings.Contains(r.Body, `"`+c.field+`"`) {
			t.Errorf("%s: %s", name, r.Body)
		}
	}
	admin.Do("POST", path, nil).ExpectError(t, http.StatusBadRequest, "common.invalid_input") // without a body
	admin.With("Content-Type", "multipart/form-data").Do("POST", path, []byte("x")).ExpectError(t, http.StatusBadRequest, "common.invalid_input")
	admin.Do("POST", path, object{"name": "x"}).ExpectError(t, http.StatusUnsupportedMediaType, "common.unsupported_media_type")
	if left, err := filepath.Glob(filepath.Join(temporary, "kontor-list-*")); err != nil || len(left) > 0 {
		t.Errorf("temporary files remain: %v %v", left, err)
	}
}

func part(w *multipart.Writer, content string) {
	part, err := w.CreateFormFile("file", "list.csv")
	if err == nil {
		_, err = part.Write([]byte(content))
	}
	if err != nil {
		panic(err) // it is a buffer
	}
}

func TestFolder_IsReadWhenItHasSettled(t *testing.T) {
	dir := t.TempDir()
	s := servertest.Start(t, func(o *settings.Settings) { o.Screening.Dir = dir })
	write := func(name, content string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	follow := func(times int) {
		t.Helper()
		for range times {
			if err := s.Screening.Follow(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	}
	entries := func() string {
		return fmt.Sprint(s.Admin().Do("GET", path+"?sort=name", nil).Expect(t, http.StatusOK).JSON(t)["total"])
	}
	write("invented.csv", people)
	write(".copying.csv", people)
	follow(1)
	if got := entries(); got != "0" {
		t.Errorf("a file that may still be copied was loaded: %s", got)
	}
	follow(2)
	if got := entries(); got != "1" {
		t.Errorf("%s lists", got)
	}
	if r := check(t, s.Admin(), object{"name": "Viktor Beispielow"}); len(r.Matches) != 1 || r.Lists[0].Name != "invented" {
		t.Errorf("got %+v", r)
	}
	write("invented.csv", "damaged\n")
	follow(3)
	if r := check(t, s.Admin(), object{"name": "Viktor Beispielow"}); len(r.Matches) != 1 {
		t.Errorf("a damaged file replaced the list: %+v", r)
	}
	if err := os.Remove(filepath.Join(dir, "invented.csv")); err != nil {
		t.Fatal(err)
	}
	follow(2)
	if got := entries(); got != "1" {
		t.Errorf("a removed file dropped its list: %s", got)
	}
}

// An error that stays is logged once, and again when it is another one.
func TestFolder_LogsAnErrorOnce(t *testing.T) {
	dir := t.TempDir()
	var logged bytes.Buffer
	s := screening.New(storetest.Open(t), screening.Options{Dir: dir, Log: slog.New(slog.NewTextHandler(&logged, nil))})
	defer s.Close()
	follow := func(times, want int) {
		t.Helper()
		logged.Reset()
		for range times {
			if err := s.Follow(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if got := strings.Count(logged.String(), "level=ERROR"); got != want {
			t.Errorf("%d errors were logged, want %d: %s", got, want, &logged)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "damaged.csv"), []byte("damaged\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("nowhere", filepath.Join(dir, "missing.csv")); err != nil {
		t.Fatal(err)
	}
	follow(5, 2)
	if !strings.Contains(logged.String(), lists.ErrUnknownFormat.Error()) {
		t.Errorf("the log does not say why the file was rejected: %s", &logged)
	}
	if err := os.WriteFile(filepath.Join(dir, "damaged.csv"), []byte("damaged again\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	follow(5, 1)
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	follow(3, 1)
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	follow(3, 0)
	if err := os.Remove(dir); err != nil {
		t.Fatal(err)
	}
	follow(3, 1)
}

// Lists are in force on every node.
func TestLists_AreInForceOnEveryNode(t *testing.T) {
	s := servertest.StartShared(t)
	other := servertest.Node(t, s)
	load(t, s.Admin(), "Sample", people).Expect(t, http.StatusCreated)
	admin := other.Admin()
	if r := check(t, admin, object{"name": "Viktor Beispielow"}); len(r.Matches) != 1 {
		t.Errorf("on the other node: %+v", r)
	}
	load(t, s.Admin(), "Sample", sample+line("P9", "Person", "Spaeter Dazugekommen", "", "")).Expect(t, http.StatusCreated)
	testenv.Wait(t, "the index to be built in the background", func() bool {
		return len(check(t, admin, object{"name": "Spaeter Dazugekommen"}).Matches) > 0
	})
}
