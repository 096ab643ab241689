package store

import (
	"errors"

	"kontor/store/datadir"
	"kontor/store/sqlite"
)

// Discard deletes the database, its mark and the key in a directory that no process uses. It is for data that can be created
// again, such as an interrupted demo.
func Discard(dir string) (err error) {
	d, err := datadir.Open(dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.Close()) }()
	for _, database := range []string{datadir.Database, datadir.NewDatabase, datadir.RestoringDatabase} {
		if err := d.Remove(sqlite.Files(database)...); err != nil {
			return err
		}
	}
	if err := d.Remove(datadir.Key, datadir.NewKey, datadir.RestoringKey, sqlite.MarkName, sqlite.RestoredName, keptTotals); err != nil {
		return err
	}
	return datadir.Sync(dir)
}
