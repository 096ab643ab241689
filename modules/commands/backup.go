package commands

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"kontor/server/settings"
	"kontor/store/backup"
	"kontor/store/backup/continuous"
	"kontor/store/clock"
	"kontor/store/datadir"
	"kontor/store/inspect"
)

type backupCommand struct {
	File                string
	Base                fileName
	WithKey, WithoutKey bool
}

func (l *commandLine) backup() *cobra.Command {
	c := &backupCommand{}
	cmd := &cobra.Command{
		Use: "backup <file>", Short: "Back up the data directory to one file.",
		Long: `An existing file is rejected. "-" writes to standard output. The server may be
running. The file is compressed with zstd.

It does not contain the master key: export it once with "kontor key export", and
keep it elsewhere. A restored database cannot be used without it.`,
		Example: `kontor backup /backup/kontor-2027-01-31.backup
kontor backup --base=/backup/sunday.backup /backup/monday.backup
kontor backup - | ssh backup@vault.example 'cat > kontor.backup'`,
		Args: arguments(&c.File), RunE: l.run(c.Run),
	}
	f := cmd.Flags()
	f.Var(&c.Base, "base", "Write only what has changed since this backup of the same database. A restore needs both.")
	f.BoolVar(&c.WithKey, "with-key", false, "Put the master key into the backup. Everybody who reads the file can then read sealed values and sign in as anybody.")
	f.BoolVar(&c.WithoutKey, "without-key", false, "Leave out the master key. This is the default.")
	cmd.AddCommand(l.verify())
	return cmd
}

// standardStream is the file name that stands for standard input or output.
const standardStream = "-"

// Run writes the backup.
func (c *backupCommand) Run(ctx context.Context, p Process, r *settings.Result) error {
	if c.WithKey && c.WithoutKey {
		return errors.New("--with-key cannot be combined with --without-key; use one of them")
	}
	p.warn(r)
	if err := notShared(r, postgresBacksUp); err != nil {
		return err
	}
	o := backup.Options{WithKey: c.WithKey, Base: string(c.Base), Progress: progressTo(p.Stderr)}
	report := p.Stdout
	var result backup.Result
	var err error
	if c.File == standardStream {
		report = p.Stderr
		result, err = backup.Write(ctx, databaseOf(r), p.Stdout, o)
	} else {
		result, err = backup.Create(ctx, databaseOf(r), c.File, o)
	}
	if err != nil {
		return err
	}
	note := "; it does not contain the master key, which a restore needs (kontor key export)"
	if c.WithKey {
		note = ""
		fmt.Fprintf(p.Stderr, "kontor: warning: %s contains the master key; protect it like the data directory\n", c.name())
	}
	_, err = fmt.Fprintf(report, "%s was backed up to %s: %s%s\n", r.Settings.Data.Dir, c.name(), describeBackup(result), note)
	return err
}

func (c *backupCommand) name() string {
	if c.File == standardStream {
		return "standard output"
	}
	return c.File
}

// describeBackup says how much was read and written.
func describeBackup(r backup.Result) string {
	text := fmt.Sprintf("%s compressed to %s (%d %%)", megabytes(r.Database), megabytes(r.Compressed), percent(r.Compressed, r.Database))
	if r.Changed < r.Pages {
		text = fmt.Sprintf("%d of %d pages changed, %s", r.Changed, r.Pages, text)
	}
	return text
}

func megabytes(n int64) string { return fmt.Sprintf("%.1f MB", float64(n)/1e6) }

func percent(part, whole int64) int64 {
	if whole == 0 {
		return 0
	}
	return part * 100 / whole
}

// progressEvery is the interval of progress lines. A backup that is faster prints none.
const progressEvery = 2 * time.Second

// progressTo returns a function that prints from time to time how much is done.
func progressTo(w io.Writer) func(done, total int64) {
	begun := time.Now()
	printed := begun
	return func(done, total int64) {
		if time.Since(printed) < progressEvery {
			return
		}
		printed = time.Now()
		fmt.Fprintf(w, "%3d %% of %s, %s/s\n", percent(done, total), megabytes(total), megabytes(int64(float64(done)/time.Since(begun).Seconds())))
	}
}

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
		Args:    arguments(&c.URL), RunE: l.run(c.Run),
	}
	c.add(cmd.Flags())
	cmd.Flags().Var(&c.Work, "work", "Directory for the restored database, which is deleted at the end; without it the temporary directory of the system.")
	return cmd
}

// Run restores, checks and deletes.
func (c *verifyCommand) Run(ctx context.Context, p Process, r *settings.Result) (err error) {
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
	checked, err := checkAll(ctx, to, false, true)
	if err != nil {
		return fmt.Errorf("%s does not hold an intact database: %w", target, err)
	}
	return p.say("%s is intact up to commit %d: %s", describeState(target, restored), restored.State.Commits, checked)
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
