package erasures_test

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"kontor/store/erasures"
)

func mac(data []byte) []byte {
	h := hmac.New(sha256.New, []byte("key"))
	h.Write(data)
	return h.Sum(nil)
}

func entry(id string) erasures.Entry {
	return erasures.Entry{ID: id, Kind: "customer", Subject: "subject of " + id, Reason: "request", By: "admin", At: 1}
}

func ledger(t testing.TB, ids ...string) (path string, content []byte) {
	t.Helper()
	path = filepath.Join(t.TempDir(), erasures.Name)
	for _, id := range ids {
		if err := erasures.Append(path, mac, entry(id)); err != nil {
			t.Fatal(err)
		}
	}
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return path, content
}

func TestLedger_KeepsEntriesInTheirOrder(t *testing.T) {
	path, before := ledger(t, "a", "b", "c")
	if err := erasures.Append(path, mac, entry("b"), entry("a")); err != nil { // known
		t.Fatal(err)
	}
	if after, err := os.ReadFile(path); err != nil || !bytes.Equal(before, after) {
		t.Errorf("known entries were written again: %v", err)
	}
	entries, err := erasures.Read(path, mac)
	if err != nil || len(entries) != 3 || entries[1] != entry("b") {
		t.Errorf("read %v, %v", entries, err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the mode is %v, %v", info.Mode(), err)
	}
	if entries, err := erasures.Read(filepath.Join(t.TempDir(), "missing"), mac); entries != nil || err != nil {
		t.Errorf("a missing ledger: %v, %v", entries, err)
	}
}

func TestLedger_IgnoresALineThatWasNotCompleted(t *testing.T) {
	path, content := ledger(t, "a", "b")
	for cut := len(content) - 1; cut > bytes.IndexByte(content, '\n'); cut-- {
		if err := os.WriteFile(path, content[:cut], 0o600); err != nil {
			t.Fatal(err)
		}
		if entries, err := erasures.Read(path, mac); err != nil || len(entries) != 1 {
			t.Fatalf("%d bytes: %v, %v", cut, entries, err)
		}
		if err := erasures.Append(path, mac, entry("b")); err != nil {
			t.Fatal(err)
		}
		if again, err := os.ReadFile(path); err != nil || !bytes.Equal(again, content) {
			t.Fatalf("%d bytes: the line was not completed: %s, %v", cut, again, err)
		}
	}
}

func TestLedger_RejectsChanges(t *testing.T) {
	path, content := ledger(t, "a", "b", "c")
	lines := bytes.SplitAfter(content, []byte("\n"))
	for name, changed := range map[string][]byte{
		"another subject":    bytes.Replace(content, []byte("subject of a"), []byte("subject of x"), 1),
		"another author":     bytes.Replace(content, []byte(`"admin"`), []byte(`"other"`), 1),
		"the first is gone":  bytes.Join(lines[1:], nil),
		"the second is gone": append(bytes.Clone(lines[0]), lines[2]...),
		"exchanged lines":    bytes.Join([][]byte{lines[1], lines[0], lines[2]}, nil),
		"repeated line":      append(bytes.Clone(content), lines[2]...),
		"no JSON":            append(bytes.Clone(content), "x\n"...),
		"an empty line":      append([]byte("\n"), content...),
		"a long line":        append(bytes.Clone(content), strings.Repeat(" ", 2000)+"\n"...),
	} {
		if err := os.WriteFile(path, changed, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := erasures.Read(path, mac); !errors.Is(err, erasures.ErrLedger) {
			t.Errorf("%s: %v", name, err)
		}
		if err := erasures.Append(path, mac, entry("d")); !errors.Is(err, erasures.ErrLedger) {
			t.Errorf("append after %s: %v", name, err)
		}
		if after, err := os.ReadFile(path); err != nil || !bytes.Equal(after, changed) {
			t.Errorf("%s: the ledger was changed", name)
		}
	}
}

func TestLonger_LosesNoErasure(t *testing.T) {
	_, short := ledger(t, "a")
	_, long := ledger(t, "a", "b")
	_, other := ledger(t, "x")
	for _, pair := range [][2][]byte{{short, long}, {long, short}, {long, nil}, {nil, long}} {
		if got, err := erasures.Longer(pair[0], pair[1]); err != nil || !bytes.Equal(got, long) {
			t.Errorf("got %s, %v", got, err)
		}
	}
	if got, err := erasures.Longer(long, other); err == nil {
		t.Errorf("got %s", got)
	}
}

// No content breaks the parser, and what it accepts with a key is what that key has written.
func FuzzParse(f *testing.F) {
	_, content := ledger(f, "a", "b")
	f.Add(content)
	f.Add([]byte("{}\n"))
	f.Add([]byte(`{"id":"a","kind":"b","subject":"c","mac":""}` + "\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		entries, _, err := erasures.Parse(data, mac)
		if err != nil && !errors.Is(err, erasures.ErrLedger) {
			t.Fatal(err)
		}
		if err == nil && len(entries) > 2 {
			t.Fatalf("accepted %d entries", len(entries))
		}
	})
}
