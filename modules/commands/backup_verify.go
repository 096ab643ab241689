package commands

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"kontor/modules/app"
	"kontor/server/settings"
	"kontor/store/audittrail"
	"kontor/store/backup"
	"kontor/store/backup/continuous"
	"kontor/store/datadir"
	"kontor/store/inspect"
)

type verifyCommand struct {
	URL         string `arg:"" optional:"" name:"url" help:"Address of a continuous backup; without it that of backup.url."`
	At          string `help:"Verify the state of this time; without it the newest." placeholder:"TIME"`
	Incarnation string `help:"Verify the line of this incarnation, or this chain." placeholder:"NAME"`
	AllowGap    bool   `help:"Verify the newest complete state, although parts are missing or damaged."`
	Work        string `help:"Directory for the restored database, which is deleted at the end; without it the temporary directory of the system." type:"path" placeholder:"DIR"`
}

// Help is shown by "kontor backup verify --help".
func (verifyCommand) Help() string {
	return "The command restores the backup to a temporary directory, checks all of it as \"kontor check --files\" does, and says up to which commit it reaches. " +
		"The master key is that of KONTOR_SECRET_KEY, or of the data directory. The server may be running."
}

func (verifyCommand) examples() []string {
	return []string{"kontor backup verify s3://vault/kontor --data.dir=/var/lib/kontor", "KONTOR_SECRET_KEY=$(cat secret.key) kontor backup verify /mnt/vault"}
}

// Run restores, checks and deletes.
func (c verifyCommand) Run(ctx context.Context, p Process, r *settings.Result) (err error) {
	p.warn(r)
	if c.URL == "" {
		c.URL = r.Settings.Backup.URL
	}
	if c.URL == "" {
		return errors.New("name the address of a continuous backup, or set backup.url")
	}
	target, err := continuous.Open(c.URL)
	if err != nil {
		return err
	}
	at, err := parseAt(c.At)
	if err != nil {
		return err
	}
	key, err := masterKeyOf(ctx, r)
	if err != nil {
		return err
	}
	work, err := os.MkdirTemp(c.Work, "kontor-verify-")
	if err != nil {
		return fmt.Errorf("the backup cannot be restored for the check: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(work)) }()
	to := inspect.Source{Dir: filepath.Join(work, "data"), SecretKey: key}
	restored, err := continuous.Restore(ctx, target, continuous.Wanted{At: at, Line: c.Incarnation, AllowGap: c.AllowGap}, to)
	if err != nil {
		return err
	}
	printNotes(p.Stderr, restored)
	checked, err := checkRestored(ctx, to)
	if err != nil {
		return fmt.Errorf("%s does not hold an intact database: %w", target, err)
	}
	_, err = fmt.Fprintf(p.Stdout, "%s is intact up to commit %d: %s\n", describeState(target, restored), restored.State.Commits, checked)
	return err
}

// masterKeyOf returns the master key of the settings, or of the data directory.
func masterKeyOf(ctx context.Context, r *settings.Result) (string, error) {
	from := databaseOf(r)
	if from.SecretKey != "" || !datadir.At(from.Dir).Has(datadir.Database) {
		return from.SecretKey, nil
	}
	key, err := backup.ReadKey(ctx, from)
	return string(key), err
}

// checkRestored checks all of a restored database.
func checkRestored(ctx context.Context, from inspect.Source) (string, error) {
	var compared, files int64
	var oldForm error
	report, err := inspect.Check(ctx, from, func(ctx context.Context, e *audittrail.Evidence) (err error) {
		if compared, oldForm, err = checkRecords(ctx, e); err == nil {
			files, err = app.CheckFiles(ctx, e)
		}
		return err
	})
	if err != nil {
		return "", err
	}
	return describeRecords(describeCheck(report, false), compared, oldForm) + fmt.Sprintf(", the content of %d files matches their digests", files), nil
}
