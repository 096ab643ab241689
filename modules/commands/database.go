package commands

import (
	"context"
	"errors"
	"fmt"

	"kontor/modules/app"
	"kontor/server/settings"
	"kontor/store"
)

type backupCommand struct {
	File       string `arg:"" help:"New file for the backup; an existing one is refused." type:"path"`
	WithoutKey bool   `help:"Leave out the master key; it is then needed as KONTOR_SECRET_KEY after a restore."`
}

// Help is shown by "kontor backup --help".
func (backupCommand) Help() string {
	return "A running server need not be stopped. The file holds the master key, so keep it as secret as the data directory."
}

// Run writes the backup.
func (c backupCommand) Run(ctx context.Context, p Process, r *settings.Result) error {
	p.warn(r)
	if err := store.Backup(ctx, storeOptions(r), c.File, store.BackupOptions{WithoutKey: c.WithoutKey}); err != nil {
		return err
	}
	_, err := fmt.Fprintf(p.Stdout, "%s was backed up to %s\n", r.Settings.Data.Dir, c.File)
	return err
}

type restoreCommand struct {
	File string `arg:"" help:"A file that \"kontor backup\" has written." type:"path"`
}

// Help is shown by "kontor restore --help".
func (restoreCommand) Help() string {
	return "The data directory must be missing or empty: nothing is ever overwritten. The backup is checked before it is put in place."
}

// Run brings the backup back.
func (c restoreCommand) Run(ctx context.Context, p Process, r *settings.Result) error {
	p.warn(r)
	report, err := store.Restore(ctx, c.File, storeOptions(r))
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(p.Stdout, "%s was restored to %s: %s\n", c.File, r.Settings.Data.Dir, describeCheck(report))
	return err
}

type checkCommand struct {
	Record string `help:"Instead of all records, prove one that the API answered: its type and id, with its JSON on standard input." placeholder:"TYPE/ID"`
}

// Help is shown by "kontor check --help".
func (checkCommand) Help() string {
	return "A running server need not be stopped. Nothing is changed. The first thing that is wrong is named, and the exit code is 1 then."
}

// Run checks the database, the audit trail, and the records by it.
func (c checkCommand) Run(ctx context.Context, p Process, r *settings.Result) error {
	p.warn(r)
	if c.Record != "" {
		return c.prove(ctx, p, r)
	}
	var compared int64
	var old error
	report, err := store.CheckWith(ctx, storeOptions(r), func(ctx context.Context, e *store.Evidence) (err error) {
		compared, err = app.CheckRecords(ctx, e)
		if errors.Is(err, app.ErrOldForm) {
			old, err = err, nil
		}
		return err
	})
	if err != nil {
		return err
	}
	text := describeCheck(report)
	switch {
	case old != nil:
		text += "; " + old.Error()
	case report.KeyChecked:
		text += fmt.Sprintf(", %d records as the audit trail knows them", compared)
	}
	_, err = fmt.Fprintf(p.Stdout, "%s is whole: %s\n", r.Settings.Data.Dir, text)
	return err
}

func storeOptions(r *settings.Result) store.Options {
	return store.Options{Dir: r.Settings.Data.Dir, SecretKey: string(r.Settings.Secrets.SecretKey)}
}

func describeCheck(c store.CheckReport) string {
	text := fmt.Sprintf("schema %d, %d bytes, %d audit entries", c.Schema, c.Bytes, c.AuditEntries)
	if c.MarkChecked {
		text += ", nothing that was acknowledged is missing"
	}
	if !c.KeyChecked {
		text += "; the end of the audit trail and the records are unproven, because the master key is not here (set KONTOR_SECRET_KEY)"
	}
	if c.Pages == 0 {
		text += "; its pages have no checksums (a backup that is restored has them)"
	}
	return text
}
