package demo

import (
	"embed"
	"io/fs"
	"os"
	"path/filepath"
)

// billsName is the directory of the sample bills, beside the database.
const billsName = "sample-bills"

// bills are invoices of fictitious creditors: a usual one, one in euros with billing information, one without an amount,
// and one that violates the standard.
//
//go:embed bills/*.pdf
var bills embed.FS

// writeBills writes the sample bills to a data directory.
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
