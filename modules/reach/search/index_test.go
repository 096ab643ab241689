package search_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"kontor/server/access"
	"kontor/server/servertest"
	"kontor/store"
	"kontor/store/storetest"
)

// inFiles reports whether a file of the database contains a text.
func inFiles(t testing.TB, db *store.DB, text string) bool {
	t.Helper()
	if err := db.Clean(t.Context()); err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(db.Dir(), "*"))
	if err != nil || len(files) == 0 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	return slices.ContainsFunc(files, func(name string) bool {
		content, err := os.ReadFile(name)
		return err == nil && bytes.Contains(bytes.ToLower(content), []byte(text))
	})
}

// documents returns the number of documents, and of those with a word.
func documents(t testing.TB, db *store.DB, word string) (all, with int) {
	t.Helper()
	err := db.QueryRow(t.Context(), `SELECT COUNT(*), COUNT(CASE WHEN title LIKE $1 OR body LIKE $1 THEN 1 END) FROM search_documents`, "%"+word+"%").Scan(&all, &with)
	if err != nil {
		t.Fatal(err)
	}
	return all, with
}

// Words of erased and deleted records are gone from the index, and from its bytes, when the request is answered.
func TestIndex_ForgetsErasedRecordsAtOnce(t *testing.T) {
	s := servertest.Start(t)
	admin := s.Admin()
	id := customer(admin, "Xaverius", "Qvwxyzberg", "qvwxyzmail@example.com", "+41 44 668 18 00")
	task := admin.Create("/v1/customers/"+id+"/tasks", servertest.Body{"title": "Zzyqtask", "category": "sign"})
	for i := range 300 { // other words around them
		customer(admin, fmt.Sprint("Name", i), fmt.Sprint("Qv", i), fmt.Sprintf("q%d@example.com", i), "+41 44 668 18 00")
	}
	if got := find(t, admin, "qvwxyzberg").titles(); len(got) != 1 {
		t.Fatalf("got %q", got)
	}
	files := s.DB.Dir() != ""
	if files && !inFiles(t, s.DB, "qvwxyz") {
		t.Fatal("the words are in no file: this test would find nothing")
	}
	admin.Do("DELETE", "/v1/customers/"+id+"/tasks/"+task, nil).Expect(t, 200)
	if _, with := documents(t, s.DB, "zzyqtask"); with != 0 {
		t.Error("a deleted task has a document")
	}
	admin.Erase("/v1/customers/" + id)
	if all, with := documents(t, s.DB, "qvwxyz"); with != 0 || all < 300 {
		t.Errorf("%d of %d documents have words of the erased customer", with, all)
	}
	if files {
		for _, word := range []string{"qvwxyz", "zzyqtask"} {
			if inFiles(t, s.DB, word) {
				t.Errorf("a file contains %s", word)
			}
		}
	}
	for _, text := range []string{"qvwxyzberg", "qvwxyzmail", "xaverius", "zzyqtask"} {
		if got := find(t, admin, text).titles(); len(got) != 0 {
			t.Errorf("%s finds %q", text, got)
		}
	}
}

// Records of a database without an index are indexed in the background, and a second start continues.
func TestIndex_ReadsExistingRecordsAndContinues(t *testing.T) {
	s := servertest.Start(t)
	fill(t, s, 450, s.Admin().UserID)
	follow := func() {
		t.Helper()
		for _, job := range s.Jobs() {
			if job.Name == "search.follow" {
				if err := job.Run(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	follow()
	all, _ := documents(t, s.DB, "")
	if all < 450 {
		t.Fatalf("%d documents", all)
	}
	// The progress of a first reading that was interrupted after two batches.
	servertest.Exec(t, s.DB, `DELETE FROM search_documents WHERE source = 'customers' AND number > 200`)
	servertest.Exec(t, s.DB, `UPDATE search_progress SET done = FALSE, position = (SELECT MAX(source_id) FROM search_documents WHERE source = 'customers') WHERE name = 'customers'`)
	if got := find(t, s.Admin(), "kung", "limit=20"); len(got.titles()) == 0 {
		t.Error("nothing was found")
	}
	if again, _ := documents(t, s.DB, ""); again != all {
		t.Errorf("%d documents, want %d", again, all)
	}
}

// A start creates a missing index, whose documents are read again.
func TestIndex_IsCreatedAgain(t *testing.T) {
	if storetest.SQLiteOnly(t, "the index of a table is part of the database there") {
		return
	}
	dir := t.TempDir()
	db := storetest.OpenDir(t, dir)
	servertest.Exec(t, db, `INSERT INTO search_documents (number, source, source_id, rec_id, title, body) VALUES (1, 'customers', 'a', 'a', ' canna ', '')`)
	servertest.Exec(t, db, `DROP TABLE kontor_words`)
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	db = storetest.OpenDir(t, dir)
	if all, _ := documents(t, db, ""); all != 0 {
		t.Errorf("%d documents of the former index remain", all)
	}
	texts, err := db.CurrentTexts(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	servertest.Exec(t, db, `INSERT INTO search_documents (number, source, source_id, rec_id, title, body) VALUES (1, 'customers', 'a', 'a', ' canna ', ' cberta ')`)
	count := func(word string) (n int64) {
		some := (&store.TextSearch{Sources: []string{"customers"}, Any: []store.TextWords{{Words: []string{word}, Prefix: true}}}).Some(texts, 10)
		if err := db.QueryRow(t.Context(), some.SQL, some.Args...).Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	servertest.Exec(t, db, `UPDATE search_documents SET title = ' cclara '`)
	if count("anna") != 0 || count("cla") != 1 || count("berta") != 1 {
		t.Errorf("found %d, %d and %d documents", count("anna"), count("cla"), count("berta"))
	}
}

// Searches see what was acknowledged before them while others write, on every node.
func TestSearch_SeesAcknowledgedWrites(t *testing.T) {
	s := servertest.Start(t)
	nodes := []*servertest.Client{s.Admin()}
	if s.DB.Shared() {
		nodes = append(nodes, servertest.Node(t, s).Admin())
	}
	var writers sync.WaitGroup
	for w := range 4 {
		writers.Go(func() {
			for i := range 8 {
				first := fmt.Sprintf("Wq%dx%dz", w, i)
				id := customer(nodes[w%len(nodes)], first, "Parallel", "p@example.com", "+41 44 668 18 00")
				for _, reader := range nodes {
					if r, err := reader.Try("GET", "/v1/search?q="+first, nil); err != nil || !strings.Contains(r.Body, id) {
						t.Errorf("%s was not found: %d %s, %v", first, r.Status, r.Body, err)
					}
				}
			}
		})
	}
	writers.Wait()
	if total := s.Admin().Do("GET", "/v1/customers?q=parallel&limit=-1", nil).Expect(t, 200).JSON(t)["total"]; total != 32.0 {
		t.Errorf("total %v, want 32", total)
	}
}

// A user is found by credentials only by callers who may read all of them.
func TestSearch_HidesCredentials(t *testing.T) {
	s := servertest.Start(t)
	person := s.User(access.Customer).Named(t, "Wilhelmine Tell")
	login := s.Admin().Create("/v1/users/"+person.UserID+"/credentials", servertest.Body{"credential_type": "email", "credential_value": "qqsecret@example.com"})
	if login == "" {
		t.Fatal("no credential")
	}
	if got := find(t, s.Admin(), "qqsecret@example").titles(); !slices.Equal(got, []string{"users Wilhelmine Tell"}) {
		t.Errorf("an administrator finds %q", got)
	}
	for _, c := range []*servertest.Client{s.User(access.Advisor), person} {
		if got := find(t, c, "qqsecret").titles(); len(got) != 0 {
			t.Errorf("%q", got)
		}
	}
}
