package commands

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"kontor/server/settings"
	"kontor/store/backup"
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
		Args: arguments(&c.File), RunE: l.run(c),
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
func (c backupCommand) Run(ctx context.Context, p Process, r *settings.Result) error {
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

func (c backupCommand) name() string {
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
