package commands

import (
	"context"
	"fmt"
	"os"

	"kontor/server/settings"
	"kontor/store/backup"
	"kontor/store/datadir"
)

// privacyCommand groups the commands about personal data.
type privacyCommand struct {
	Ledger privacyLedgerCommand `cmd:"" help:"Write the ledger of erasures to a file, to keep it with the backups."`
}

type privacyLedgerCommand struct {
	File string `arg:"" help:"New file for the ledger; an existing file is rejected. - is standard output." type:"path"`
}

// Help is shown by "kontor privacy ledger --help".
func (privacyLedgerCommand) Help() string {
	return "The server may be running. The ledger holds ids and times, no personal data. After the loss of the data directory, " +
		"pass it to \"kontor restore --erasures\", so that data that were erased after the backup are erased again."
}

func (privacyLedgerCommand) examples() []string {
	return []string{"kontor privacy ledger /backup/kontor.erasures"}
}

// Run writes the ledger.
func (c privacyLedgerCommand) Run(ctx context.Context, p Process, r *settings.Result) error {
	p.warn(r)
	if err := requireData(ctx, r); err != nil {
		return err
	}
	ledger, err := backup.ReadLedger(r.Settings.Data.Dir)
	if err != nil {
		return err
	}
	if c.File == "-" {
		_, err := p.Stdout.Write(ledger)
		return err
	}
	if _, err := os.Lstat(c.File); err == nil {
		return fmt.Errorf("%s exists already; name a new file", c.File)
	}
	if err := datadir.Write(c.File, ledger); err != nil {
		return fmt.Errorf("%s cannot be written: %w", c.File, datadir.Cause(err))
	}
	_, err = fmt.Fprintf(p.Stdout, "the ledger of erasures of %s was written to %s\n", r.Settings.Data.Dir, c.File)
	return err
}
