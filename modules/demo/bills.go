package demo

import (
	"embed"
	"io/fs"
	"os"
	"path/filepath"
)

// billsName is the directory of the sample bills, beside the database.
const billsName = "sample-bills"

// bills are invoices of creditors that do not exist: a usual one, one in euros with billing information, one with an open
// amount, and one that breaks a rule.
//
//go:embed bills/*.pdf
var bills embed.FS

// writeBills puts the sample bills into a data directory.
func writeBills(dir string) error {
	dir = filepath.Join(dir, billsName)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	names, err := fs.Glob(bills, "bills/*.pdf")
	if err != nil {
		return err
	}
	for _, name := range names {
		data, err := bills.ReadFile(name)
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, filepath.Base(name)), data, 0o600); err != nil {
			return err
		}
	}
	return nil
}
