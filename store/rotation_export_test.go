package store_test

import (
	"bytes"
	"strings"
	"testing"

	"kontor/store/audittrail"
	"kontor/store/inspect"
	"kontor/store/storetest"
)

// An export that spans rotations is verified with the first key alone, with the printed keys, and not with others.
func TestRotateMasterKey_ExportsStayValid(t *testing.T) {
	if storetest.SQLiteOnly(t, keyInFile) {
		return
	}
	dir, db := newNotes(t, 0)
	var text bytes.Buffer
	position := int64(0)
	export := func() {
		t.Helper()
		b, err := db.ExportAfter(t.Context(), position, 1000)
		if err != nil {
			t.Fatal(err)
		}
		for _, line := range append(b.Lines, b.Head) {
			text.Write(line)
		}
		position = b.Entries[len(b.Entries)-1].Seq
	}
	first := db.ExportKey()
	for n := range 3 {
		writeNotes(t, db, 5*n, 5*n+5)
		export()
		rotate(t, db)
		export()
	}
	printed, err := inspect.PublicExportKeys(t.Context(), inspect.Source{Dir: dir})
	if err != nil || len(printed) != 4 || printed[3] != first || printed[0] != db.ExportKey() {
		t.Fatalf("got %v, %v", printed, err)
	}
	for _, keys := range []string{"", strings.Join(printed, "\n")} {
		if r, err := audittrail.VerifyExport(strings.NewReader(text.String()), keys); err != nil || r.SignedTo != position || r.PublicKey != printed[0] {
			t.Errorf("keys %q: %+v, %v", keys, r, err)
		}
	}
	for _, keys := range []string{first, printed[0], printed[1] + " " + printed[2]} {
		if _, err := audittrail.VerifyExport(strings.NewReader(text.String()), keys); err == nil {
			t.Errorf("keys %q: accepted", keys)
		}
	}
	// Without the statement of the former key, a reader does not follow the new one.
	lines := strings.SplitAfter(text.String(), "\n")
	for i, l := range lines {
		if strings.Contains(l, audittrail.ActionRotated) {
			lines[i] = strings.Replace(l, `\"signature\":\"`, `\"signature\":\"AA`, 1)
			break
		}
	}
	if _, err := audittrail.VerifyExport(strings.NewReader(strings.Join(lines, "")), ""); err == nil {
		t.Error("a changed statement was accepted")
	}
}
