package sqlite

import (
	"errors"
	"os"

	"kontor/store/datadir"
	"kontor/store/engine"
	"kontor/store/sqlite/internal/binding"
)

// RestoredName is the file in which a restore without the master key records the position that it restored. A mark needs
// the key; without this file, the first start would take the backup of a running server for a database that lost its log.
// The file counts only while nothing was written since the restore. The start that creates the mark deletes it.
const RestoredName = "kontor.restored"

// RecordRestore records the position of a database that is restored without its key.
func RecordRestore(d *datadir.Directory, database string) error {
	conn, err := connect(d.File(database), binding.ReadOnly, nil)
	if err != nil {
		return err
	}
	defer conn.Close()
	var commits string
	if err := readRow(conn, engine.SelectMeta, []any{engine.MetaCommits}, &commits); errors.Is(err, engine.ErrNotFound) {
		return nil // from before there were marks
	} else if err != nil {
		return err
	}
	return datadir.Write(d.File(RestoredName), []byte(commits))
}

// isRestored reports whether a database is at the position that a restore without the key recorded in its directory.
func isRestored(conn *binding.Conn, dir string) bool {
	recorded, err := os.ReadFile(datadir.At(dir).File(RestoredName))
	if err != nil {
		return false
	}
	var commits string
	return readRow(conn, engine.SelectMeta, []any{engine.MetaCommits}, &commits) == nil && commits == string(recorded)
}
