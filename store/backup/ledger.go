package backup

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"kontor/store/datadir"
	"kontor/store/erasures"
)

// PutLedger puts a ledger of erasures into a data directory before a restore, and returns the number of its entries. A ledger in
// the directory is kept if it continues the given one. If neither continues the other, PutLedger returns an error: one of them
// would lose erasures. The start of the server verifies the ledger with the key. An empty file name leaves the directory as it is.
func PutLedger(dir, file string) (entries int, err error) {
	d := datadir.At(dir)
	present, err := os.ReadFile(d.File(erasures.Name))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return 0, fmt.Errorf("%s cannot be read: %w", d.File(erasures.Name), datadir.Cause(err))
	}
	whole, source := present, d.File(erasures.Name)
	if file != "" {
		source = file
		given, err := os.ReadFile(file)
		if err != nil {
			return 0, fmt.Errorf("%s cannot be read: %w", file, datadir.Cause(err))
		}
		if whole, err = erasures.Longer(present, given); err != nil {
			return 0, fmt.Errorf("%s: %w", file, err)
		}
	}
	found, _, err := erasures.Parse(whole, nil)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", source, err)
	}
	if len(whole) == len(present) {
		return len(found), nil
	}
	if err := datadir.Make(dir); err != nil {
		return 0, fmt.Errorf("data directory %s cannot be created: %w", dir, datadir.Cause(err))
	}
	return len(found), datadir.Write(d.File(erasures.Name), whole)
}

// ReadLedger returns the ledger of erasures of a data directory, which may be in use.
func ReadLedger(dir string) ([]byte, error) {
	data, err := os.ReadFile(datadir.At(dir).File(erasures.Name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("the ledger of erasures cannot be read: %w", datadir.Cause(err))
	}
	_, _, err = erasures.Parse(data, nil)
	return data, err
}
