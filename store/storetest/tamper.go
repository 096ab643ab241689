package storetest

import (
	"database/sql"
	"encoding/binary"
	"errors"
	"os"
	"testing"

	"github.com/cespare/xxhash/v2"
	_ "modernc.org/sqlite" // changes databases without the store
)

// Tamper runs a statement on a database file that no process uses, without the store, and updates the checksums of the
// pages, as a careful attacker would.
func Tamper(tb testing.TB, path, statement string) {
	tb.Helper()
	db, err := sql.Open("sqlite", path)
	if err != nil {
		tb.Fatal(err)
	}
	_, err = db.Exec(statement)
	if err := errors.Join(err, db.Close()); err != nil {
		tb.Fatal(err)
	}
	reseal(tb, path)
}

// reseal updates the checksums of all pages, as docs/security.md describes them.
func reseal(tb testing.TB, path string) {
	tb.Helper()
	const pageSize, reserved = 4096, 20 // the byte of the header with the number of reserved bytes
	data, err := os.ReadFile(path)
	if err != nil {
		tb.Fatal(err)
	}
	if len(data) < pageSize || data[reserved] != 8 {
		return
	}
	for at := 0; at < len(data); at += pageSize {
		page := data[at : at+pageSize]
		sum := xxhash.Sum64(page[:pageSize-8]) ^ uint64(at/pageSize+1)*0x9e3779b97f4a7c15
		binary.LittleEndian.PutUint64(page[pageSize-8:], sum)
	}
	if err := os.WriteFile(path, data, 0o600); err != nil {
		tb.Fatal(err)
	}
}
