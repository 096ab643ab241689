package commands

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"kontor/server/settings"
	"kontor/store/backup"
	"kontor/store/backup/continuous"
	"kontor/store/datadir"
)

type restoreCommand struct {
	stateFlags
	From     []string
	List     bool
	Erasures fileName
}

func (l *commandLine) restore() *cobra.Command {
	c := &restoreCommand{}
	cmd := &cobra.Command{
		Use: "restore <file>...", Short: "Restore a backup to an empty data directory.",
		Long: `The files were written by "kontor backup": a backup, and then the increments
after it in their order. "-" reads standard input. The address of a continuous
backup (backup.url) stands in place of them.

The data directory must be missing or empty, apart from a ledger of erasures:
nothing is overwritten. The backup is checked before it is put in place. After
the restore of a backup without the master key, run "kontor key import", or set
KONTOR_SECRET_KEY.`,
		Example: `kontor restore /backup/kontor-2027-01-31.backup --data.dir=/var/lib/kontor
kontor restore /backup/sunday.backup /backup/monday.backup --data.dir=/var/lib/kontor
kontor restore --list s3://vault/kontor
KONTOR_SECRET_KEY=$(cat secret.key) kontor restore --at=2027-01-31T08:00:00Z s3://vault/kontor --data.dir=/var/lib/kontor`,
		Args: arguments(&c.From), RunE: l.run(c),
	}
	c.add(cmd.Flags())
	cmd.Flags().BoolVar(&c.List, "list", false, "Only list the lines that a continuous backup holds, with their commits, gaps and forks. With the master key it says whose lines they are.")
	cmd.Flags().Var(&c.Erasures, "erasures", "Ledger of erasures written by \"kontor privacy ledger\"; the next start applies it again.")
	return cmd
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
		return listLines(ctx, p, target, r)
	}
	erased, err := backup.PutLedger(r.Settings.Data.Dir, string(c.Erasures))
	if err != nil {
		return err
	}
	what := strings.Join(c.From, ", ")
	var restored backup.Restored
	if target != nil {
		var found continuous.Restored
		found, err = c.fromTarget(ctx, p, target, r)
		restored, what = found.Restored, describeState(target, found)
	} else {
		restored, err = c.fromFiles(ctx, p.Stdin, r)
	}
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintf(p.Stdout, "%s was restored to %s: %s\n", what, r.Settings.Data.Dir, describeCheck(restored.Report, false)); err != nil {
		return err
	}
	if target != nil || r.Settings.Backup.URL != "" {
		if _, err := fmt.Fprintf(p.Stdout, "It is the incarnation %s. It ships nothing to the backup.url of the server that it replaces, unless you start it with backup.line=%[1]s.\n",
			restored.Incarnation); err != nil {
			return err
		}
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
	case !remote && (c.At != "" || c.List || c.Incarnation != "" || c.AllowGap):
		return nil, fmt.Errorf("--at, --list, --incarnation and --allow-gap are for the address of a continuous backup; %s is none", address)
	case !remote:
		return nil, nil
	case len(c.From) > 1:
		return nil, errors.New("name one address of a continuous backup")
	}
	return continuous.Open(address)
}

func (c restoreCommand) fromTarget(ctx context.Context, p Process, target continuous.Target, r *settings.Result) (continuous.Restored, error) {
	wanted, err := c.wanted()
	if err != nil {
		return continuous.Restored{}, err
	}
	restored, err := continuous.Restore(ctx, target, wanted, databaseOf(r))
	if err == nil {
		printNotes(p.Stderr, restored)
	}
	return restored, err
}

// printNotes prints what else a continuous backup holds, and what is missing.
func printNotes(out io.Writer, restored continuous.Restored) {
	for _, note := range restored.Notes {
		fmt.Fprintln(out, "kontor: note: "+note)
	}
}

// describeState names a state of a continuous backup.
func describeState(target continuous.Target, r continuous.Restored) string {
	if r.Line == nil {
		return ""
	}
	if r.Line.Old {
		return fmt.Sprintf("%s of %s, from the chain %s of an earlier version", target, r.At, r.Line.ID)
	}
	return fmt.Sprintf("%s of %s, commit %d of %s", target, r.At, r.State.Commits, r.Line.ID)
}

// listLines prints what a continuous backup holds, with whose lines they are if there is a master key.
func listLines(ctx context.Context, p Process, target continuous.Target, r *settings.Result) error {
	var key continuous.Key
	if masterKey, err := masterKeyOf(ctx, r); err == nil && masterKey != "" {
		if key, err = continuous.KeyOfMaster(masterKey); err != nil {
			return err
		}
	}
	survey, err := continuous.Look(ctx, target, key)
	if err != nil {
		return err
	}
	if len(survey.Lines) == 0 {
		return fmt.Errorf("%s: %w", target, continuous.ErrNoState)
	}
	return survey.Print(p.Stdout, key != "")
}

func (c restoreCommand) fromFiles(ctx context.Context, stdin io.Reader, r *settings.Result) (backup.Restored, error) {
	parts, err := c.parts(stdin)
	if err != nil {
		return backup.Restored{}, err
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
