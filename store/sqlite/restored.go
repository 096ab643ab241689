package sqlite

import (
	"errors"
	"os"
	"strings"

	"kontor/store/datadir"
	"kontor/store/engine"
	"kontor/store/sqlite/internal/binding"
)

// RestoredName is the file in which a restore records the position that it restored, and the incarnation that begins with it, which belongs to one file.
//
// The position counts only while nothing was written since the restore. A restore without the master key cannot write a mark: without
// the file, the first start would take the backup of a running server for a database that lost its log. The next start deletes
// the file.
const RestoredName = "kontor.restored"

// RecordRestore records the position of a database that is restored, and the name of its incarnation.
func RecordRestore(d *datadir.Directory, database, incarnation string) error {
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
	return datadir.Write(d.File(RestoredName), []byte(strings.Join([]string{commits, incarnation, datadir.Identity(d.File(database))}, "\n")))
}

// readRestored returns what a restore recorded in a directory. ok is false without one. The incarnation is empty in a copy of the
// directory.
func readRestored(d *datadir.Directory) (commits, incarnation string, ok bool) {
	recorded, err := os.ReadFile(d.File(RestoredName))
	if err != nil {
		return "", "", false
	}
	lines := strings.Split(string(recorded), "\n")
	if len(lines) == 3 && IsIncarnation(lines[1]) && datadir.SameFile(lines[2], datadir.Identity(d.File(datadir.Database))) {
		incarnation = lines[1]
	}
	return lines[0], incarnation, true
}

// isRestored reports whether a database is at the position that a restore without the key recorded in its directory.
func isRestored(conn *binding.Conn, dir string) bool {
	recorded, _, ok := readRestored(datadir.At(dir))
	var commits string
	return ok && readRow(conn, engine.SelectMeta, []any{engine.MetaCommits}, &commits) == nil && commits == recorded
}
