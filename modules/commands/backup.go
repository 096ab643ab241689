package commands

import (
	"context"
	"fmt"

	"kontor/server/settings"
	"kontor/store/backup"
)

type backupCommand struct {
	File       string `arg:"" help:"New file for the backup; an existing file is rejected." type:"path"`
	WithoutKey bool   `help:"Leave out the master key. After a restore, set KONTOR_SECRET_KEY to it."`
}

// Help is shown by "kontor backup --help".
func (backupCommand) Help() string {
	return "The server may be running. The file contains the master key unless --without-key is given: protect it like the data directory."
}

func (backupCommand) examples() []string {
	return []string{"kontor backup /backup/kontor-2027-01-31.backup"}
}

// Run writes the backup.
func (c backupCommand) Run(ctx context.Context, p Process, r *settings.Result) error {
	p.warn(r)
	if err := backup.Create(ctx, databaseOf(r), c.File, backup.Options{WithoutKey: c.WithoutKey}); err != nil {
		return err
	}
	_, err := fmt.Fprintf(p.Stdout, "%s was backed up to %s\n", r.Settings.Data.Dir, c.File)
	return err
}

type restoreCommand struct {
	File string `arg:"" help:"A file written by \"kontor backup\"." type:"path"`
}

// Help is shown by "kontor restore --help".
func (restoreCommand) Help() string {
	return "The data directory must be missing or empty: nothing is overwritten. The backup is checked before it is put in place."
}

func (restoreCommand) examples() []string {
	return []string{"kontor restore /backup/kontor-2027-01-31.backup --data.dir=/var/lib/kontor"}
}

// Run restores the backup.
func (c restoreCommand) Run(ctx context.Context, p Process, r *settings.Result) error {
	p.warn(r)
	report, err := backup.Restore(ctx, c.File, databaseOf(r))
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(p.Stdout, "%s was restored to %s: %s\n", c.File, r.Settings.Data.Dir, describeCheck(report))
	return err
}
