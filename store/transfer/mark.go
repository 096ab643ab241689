package transfer

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"

	"kontor/store/audittrail"
	"kontor/store/engine"
	"kontor/store/query"
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

const selectEnd = `SELECT seq, hash FROM audit_entries ORDER BY seq DESC LIMIT 1`

// identify returns the identity of a database and its state. Every acknowledged change of a record is in the audit trail.
func identify(ctx context.Context, q query.Querier, schema int64) (string, error) {
	var seq int64
	var hash string
	if err := q.QueryRow(ctx, selectEnd).Scan(&seq, &hash); err != nil && !errors.Is(err, engine.ErrNotFound) {
		return "", err
	}
	return identity(schema, audittrail.KeyCheckValue(ctx, q), seq, hash), nil
}

func identity(schema int64, keyCheck string, seq int64, hash string) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%d\n%s\n%d\n%s", schema, keyCheck, seq, hash))
	return hex.EncodeToString(sum[:])
}
