package commands

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"kontor/modules/app"
	"kontor/server/settings"
	"kontor/store/audittrail"
	"kontor/store/backup"
	"kontor/store/backup/continuous"
	"kontor/store/clock"
	"kontor/store/datadir"
	"kontor/store/inspect"
)

// stateFlags choose a state of a continuous backup.
type stateFlags struct {
	At, Incarnation string
	AllowGap        bool
}

func (s *stateFlags) add(f *pflag.FlagSet) {
	f.StringVar(&s.At, "at", "", "Take the state of this `time` from a continuous backup, such as 2027-01-31T08:00:00Z; without it the newest.")
	f.StringVar(&s.Incarnation, "incarnation", "", "Take the line of this incarnation, or this chain, by its `name`; needed when a continuous backup holds several histories.")
	f.BoolVar(&s.AllowGap, "allow-gap", false, "Take the newest complete state, although parts of a continuous backup are missing or damaged.")
}

// wanted returns the state that the flags choose.
func (s *stateFlags) wanted() (w continuous.Wanted, err error) {
	w = continuous.Wanted{Line: s.Incarnation, AllowGap: s.AllowGap}
	if s.At == "" {
		return w, nil
	}
	if w.At, err = clock.Parse(s.At); err != nil {
		return w, fmt.Errorf("--at must be a time such as 2027-01-31T08:00:00Z, with its zone: %q", s.At)
	}
	return w, nil
}

type verifyCommand struct {
	stateFlags
	URL  string
	Work fileName
}

func (l *commandLine) verify() *cobra.Command {
	c := &verifyCommand{}
	cmd := &cobra.Command{
		Use: "verify [<url>]", Short: "Verify that a continuous backup can be restored.",
		Long: `The address is that of a continuous backup; without it that of backup.url. The
command restores the backup to a temporary directory, checks all of it as
"kontor check --files" does, and says up to which commit it reaches. The master
key is that of KONTOR_SECRET_KEY, or of the data directory. The server may be
running.`,
		Example: "kontor backup verify s3://vault/kontor --data.dir=/var/lib/kontor\nKONTOR_SECRET_KEY=$(cat secret.key) kontor backup verify /mnt/vault",
		Args:    arguments(&c.URL), RunE: l.run(c),
	}
	c.add(cmd.Flags())
	cmd.Flags().Var(&c.Work, "work", "Directory for the restored database, which is deleted at the end; without it the temporary directory of the system.")
	return cmd
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
	wanted, err := c.wanted()
	if err != nil {
		return err
	}
	key, err := masterKeyOf(ctx, r)
	if err != nil {
		return err
	}
	work, err := os.MkdirTemp(string(c.Work), "kontor-verify-")
	if err != nil {
		return fmt.Errorf("the backup cannot be restored for the check: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(work)) }()
	to := inspect.Source{Dir: filepath.Join(work, "data"), SecretKey: key}
	restored, err := continuous.Restore(ctx, target, wanted, to)
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
