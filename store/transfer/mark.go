package transfer

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"kontor/store/engine"
)

// markTable is the table of an incomplete target. Its only row is the identity of the source. No engine opens a database that has
// the table.
const markTable = engine.CopyTable

const (
	createMark = `CREATE TABLE ` + markTable + ` (source TEXT NOT NULL PRIMARY KEY)`
	insertMark = `INSERT INTO ` + markTable + ` (source) VALUES ($1)`
	selectMark = `SELECT source FROM ` + markTable
	dropMark   = `DROP TABLE ` + markTable
)

// notOfEngines has the conditions for tables some of whose rows belong to an engine.
var notOfEngines = map[string]string{"meta": `name NOT IN ('` + engine.MetaCommits + `', '` + engine.MetaLineage + `', '` + engine.MetaWriteProbe + `')`}

const (
	selectKeyCheck = `SELECT value FROM meta WHERE name = 'key_check'`
	selectEnd      = `SELECT seq, hash FROM audit_entries ORDER BY seq DESC LIMIT 1`
)

// identify returns the identity of a database and its state. Every acknowledged change of a record is in the audit trail.
func identify(ctx context.Context, s side, schema int64) (string, error) {
	check, _, err := one[string](ctx, s, selectKeyCheck)
	if err != nil {
		return "", err
	}
	hash := sha256.New()
	fmt.Fprintln(hash, schema, check)
	for row, err := range s.rows(ctx, selectEnd) {
		if err != nil {
			return "", err
		}
		fmt.Fprintln(hash, row...)
	}
	return hex.EncodeToString(hash.Sum(nil)), nil
}
