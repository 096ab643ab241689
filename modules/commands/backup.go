package commands

import (
	"context"
	"fmt"

	"kontor/server/settings"
	"kontor/store/backup"
)

type backupCommand struct {
	File       string `arg:"" help:"New file for the backup; an existing file is rejected." type:"path"`
	WithKey    bool   `xor:"key" help:"Put the master key into the backup. Everybody who reads the file can then read sealed values and sign in as anybody."`
	WithoutKey bool   `xor:"key" help:"Leave out the master key. This is the default."`
}

// Help is shown by "kontor backup --help".
func (backupCommand) Help() string {
	return "The server may be running. The file does not contain the master key: export it once with \"kontor key export\", and keep it elsewhere. " +
		"A restored database cannot be used without it."
}

func (backupCommand) examples() []string {
	return []string{"kontor backup /backup/kontor-2027-01-31.backup"}
}

// Run writes the backup.
func (c backupCommand) Run(ctx context.Context, p Process, r *settings.Result) error {
	p.warn(r)
	if err := notShared(r, postgresBacksUp); err != nil {
		return err
	}
	if err := backup.Create(ctx, databaseOf(r), c.File, backup.Options{WithKey: c.WithKey}); err != nil {
		return err
	}
	note := "; it does not contain the master key, which a restore needs (kontor key export)"
	if c.WithKey {
		note = ""
		fmt.Fprintf(p.Stderr, "kontor: warning: %s contains the master key; protect it like the data directory\n", c.File)
	}
	_, err := fmt.Fprintf(p.Stdout, "%s was backed up to %s%s\n", r.Settings.Data.Dir, c.File, note)
	return err
}

type restoreCommand struct {
	File     string `arg:"" help:"A file written by \"kontor backup\"." type:"path"`
	Erasures string `help:"Ledger of erasures written by \"kontor privacy ledger\"; the next start applies it again." type:"path" placeholder:"FILE"`
}

// Help is shown by "kontor restore --help".
func (restoreCommand) Help() string {
	return "The data directory must be missing or empty, apart from a ledger of erasures: nothing is overwritten. The backup is checked before it is put in place. " +
		"After the restore of a backup without the master key, run \"kontor key import\", or set KONTOR_SECRET_KEY."
}

func (restoreCommand) examples() []string {
	return []string{"kontor restore /backup/kontor-2027-01-31.backup --data.dir=/var/lib/kontor"}
}

// Run restores the backup.
func (c restoreCommand) Run(ctx context.Context, p Process, r *settings.Result) error {
	p.warn(r)
	if err := notShared(r, postgresBacksUp); err != nil {
		return err
	}
	erased, err := backup.PutLedger(r.Settings.Data.Dir, c.Erasures)
	if err != nil {
		return err
	}
	report, err := backup.Restore(ctx, c.File, databaseOf(r))
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintf(p.Stdout, "%s was restored to %s: %s\n", c.File, r.Settings.Data.Dir, describeCheck(report)); err != nil {
		return err
	}
	if erased > 0 {
		if _, err := fmt.Fprintf(p.Stdout, "The ledger has %d erasures. The next start applies those that the backup lacks, before it serves requests.\n", erased); err != nil {
			return err
		}
	}
	if report.KeyChecked {
		return nil
	}
	_, err = fmt.Fprintf(p.Stdout, "The backup does not contain the master key. Before you start the server, put the key into place: "+
		"kontor key import FILE --data.dir=%s\nAlternatively, set KONTOR_SECRET_KEY for each start.\n", r.Settings.Data.Dir)
	return err
}
