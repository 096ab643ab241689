package commands

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"kontor/modules/app"
	"kontor/server/settings"
	"kontor/store/backup"
	"kontor/store/datadir"
)

// privacy returns the commands about personal data.
func (l *commandLine) privacy() *cobra.Command {
	return group("privacy", "Export the ledger of erasures.", l.exportLedger(), l.applyLedger())
}

type privacyLedgerCommand struct{ File string }

func (l *commandLine) exportLedger() *cobra.Command {
	c := &privacyLedgerCommand{}
	return &cobra.Command{
		Use: "ledger <file>", Short: "Write the ledger of erasures to a file, to keep it with the backups.",
		Long: `An existing file is rejected. "-" is standard output. The server may be running.

The ledger holds ids and times, no personal data. After the loss of the data
directory, pass it to "kontor restore --erasures", so that data that were erased
after the backup are erased again. For a PostgreSQL database, pass it to
"kontor privacy apply" after the restore.`,
		Example: "kontor privacy ledger /backup/kontor.erasures", Args: arguments(&c.File), RunE: l.run(c),
	}
}

// Run writes the ledger.
func (c privacyLedgerCommand) Run(ctx context.Context, p Process, r *settings.Result) error {
	p.warn(r)
	if err := requireData(ctx, r); err != nil {
		return err
	}
	ledger, err := readLedger(ctx, p, r)
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
	_, err = fmt.Fprintf(p.Stdout, "the ledger of erasures of %s was written to %s\n", placeName(r), c.File)
	return err
}

// readLedger returns the ledger of erasures. A PostgreSQL database has none beside it: its table is encoded.
func readLedger(ctx context.Context, p Process, r *settings.Result) (ledger []byte, err error) {
	if !isShared(r) {
		return backup.ReadLedger(r.Settings.Data.Dir)
	}
	err = administer(ctx, p, r, func(ctx context.Context, m *app.Modules) error {
		ledger, _, err = m.Privacy.Ledger(ctx)
		return err
	})
	return ledger, err
}

type privacyApplyCommand struct{ File string }

func (l *commandLine) applyLedger() *cobra.Command {
	c := &privacyApplyCommand{}
	return &cobra.Command{
		Use: "apply <file>", Short: "Repeat the erasures of a ledger in a PostgreSQL database that was restored.",
		Long: `"kontor privacy ledger" has written the file. A backup of the database from
before an erasure still holds the data. After its restore, and before a node
serves requests, apply the newest ledger: the data are erased again. Erasures
that the database has are skipped. With a data directory, use
"kontor restore --erasures" instead.`,
		Example: "kontor privacy apply /backup/kontor.erasures", Args: arguments(&c.File), RunE: l.run(c),
	}
}

// Run applies the ledger.
func (c privacyApplyCommand) Run(ctx context.Context, p Process, r *settings.Result) error {
	if !isShared(r) {
		return errors.New("a data directory has a ledger of its own, which every start applies; use \"kontor restore --erasures\"")
	}
	ledger, err := os.ReadFile(c.File)
	if err != nil {
		return fmt.Errorf("%s cannot be read: %w", c.File, datadir.Cause(err))
	}
	return administer(ctx, p, r, func(ctx context.Context, m *app.Modules) error {
		entries, repeated, err := m.Privacy.Apply(ctx, ledger)
		if err != nil {
			return fmt.Errorf("%s: %w", c.File, err)
		}
		_, err = fmt.Fprintf(p.Stdout, "the ledger has %d erasures; %d were repeated in %s\n", entries, repeated, placeName(r))
		return err
	})
}
