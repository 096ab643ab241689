package commands

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"kontor/server/settings"
	"kontor/store/backup"
	"kontor/store/backup/continuous"
	"kontor/store/clock"
	"kontor/store/datadir"
	"kontor/store/inspect"
)

type restoreCommand struct {
	From     []string `arg:"" name:"file" help:"A file written by \"kontor backup\", and then the increments after it in their order; or the address of a continuous backup (backup.url). \"-\" reads from standard input."`
	At       string   `help:"Restore the state of this time from a continuous backup, such as 2027-01-31T08:00:00Z; without it the latest." placeholder:"TIME"`
	List     bool     `help:"Only list the times that a continuous backup holds."`
	Erasures string   `help:"Ledger of erasures written by \"kontor privacy ledger\"; the next start applies it again." type:"path" placeholder:"FILE"`
}

// Help is shown by "kontor restore --help".
func (restoreCommand) Help() string {
	return "The data directory must be missing or empty, apart from a ledger of erasures: nothing is overwritten. The backup is checked before it is put in place. " +
		"After the restore of a backup without the master key, run \"kontor key import\", or set KONTOR_SECRET_KEY."
}

func (restoreCommand) examples() []string {
	return []string{
		"kontor restore /backup/kontor-2027-01-31.backup --data.dir=/var/lib/kontor",
		"kontor restore /backup/sunday.backup /backup/monday.backup --data.dir=/var/lib/kontor",
		"kontor restore --list s3://vault/kontor",
		"KONTOR_SECRET_KEY=$(cat secret.key) kontor restore --at=2027-01-31T08:00:00Z s3://vault/kontor --data.dir=/var/lib/kontor",
	}
}

// Run restores the backup.
func (c restoreCommand) Run(ctx context.Context, p Process, r *settings.Result) error {
	p.warn(r)
	if err := notShared(r, postgresBacksUp); err != nil {
		return err
	}
	target, err := c.target()
	if err != nil {
		return err
	}
	if c.List {
		return listPeriods(ctx, p, target)
	}
	erased, err := backup.PutLedger(r.Settings.Data.Dir, c.Erasures)
	if err != nil {
		return err
	}
	what := strings.Join(c.From, ", ")
	var report inspect.Report
	if target != nil {
		var state clock.Time
		state, report, err = c.fromTarget(ctx, target, r)
		what = fmt.Sprintf("%s of %s", target, state)
	} else {
		report, err = c.fromFiles(ctx, p.Stdin, r)
	}
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintf(p.Stdout, "%s was restored to %s: %s\n", what, r.Settings.Data.Dir, describeCheck(report, false)); err != nil {
		return err
	}
	if erased > 0 {
		if _, err := fmt.Fprintf(p.Stdout, "The ledger has %d erasures. The next start applies those that the backup lacks, before it serves requests.\n", erased); err != nil {
			return err
		}
	}
	if r.Settings.Secrets.SecretKey != "" && target == nil || datadir.At(r.Settings.Data.Dir).Has(datadir.Key) {
		return nil
	}
	_, err = fmt.Fprintf(p.Stdout, "The backup does not contain the master key. Before you start the server, put the key into place: "+
		"kontor key import FILE --data.dir=%s\nAlternatively, set KONTOR_SECRET_KEY for each start.\n", r.Settings.Data.Dir)
	return err
}

// target returns the target of a continuous backup, or nil for files.
func (c restoreCommand) target() (continuous.Target, error) {
	address := c.From[0]
	info, err := os.Stat(address)
	remote := strings.Contains(address, "://") || err == nil && info.IsDir()
	switch {
	case !remote && (c.At != "" || c.List):
		return nil, fmt.Errorf("--at and --list are for the address of a continuous backup; %s is none", address)
	case !remote:
		return nil, nil
	case len(c.From) > 1:
		return nil, errors.New("name one address of a continuous backup")
	}
	return continuous.Open(address)
}

func (c restoreCommand) fromTarget(ctx context.Context, target continuous.Target, r *settings.Result) (clock.Time, inspect.Report, error) {
	var at clock.Time
	if c.At != "" {
		var err error
		if at, err = clock.Parse(c.At); err != nil {
			return 0, inspect.Report{}, fmt.Errorf("--at must be a time such as 2027-01-31T08:00:00Z, with its zone: %q", c.At)
		}
	}
	return continuous.Restore(ctx, target, at, databaseOf(r))
}

// listPeriods prints the times that a continuous backup holds, a line each.
func listPeriods(ctx context.Context, p Process, target continuous.Target) error {
	periods, err := continuous.Periods(ctx, target)
	if err != nil {
		return err
	}
	for _, one := range periods {
		if _, err := fmt.Fprintf(p.Stdout, "%s to %s  %d parts, %s\n", one.From, one.To, one.Parts, megabytes(one.Bytes)); err != nil {
			return err
		}
	}
	if len(periods) == 0 {
		return fmt.Errorf("%s: %w", target, continuous.ErrNoState)
	}
	return nil
}

func (c restoreCommand) fromFiles(ctx context.Context, stdin io.Reader, r *settings.Result) (inspect.Report, error) {
	parts, err := c.parts(stdin)
	if err != nil {
		return inspect.Report{}, err
	}
	return backup.RestoreParts(ctx, parts, databaseOf(r))
}

// parts returns the backups to restore.
func (c restoreCommand) parts(stdin io.Reader) (parts []backup.Part, err error) {
	for _, name := range c.From {
		if name != standardStream {
			parts = append(parts, backup.FilePart(name))
			continue
		}
		if stdin == nil {
			return nil, errors.New("standard input can be read once: name other backups as files")
		}
		in := io.NopCloser(stdin)
		parts = append(parts, backup.Part{Name: "standard input", Open: func(context.Context) (io.ReadCloser, error) { return in, nil }})
		stdin = nil
	}
	return parts, nil
}
