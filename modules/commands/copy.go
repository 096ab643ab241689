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
	"kontor/store/audittrail"
	"kontor/store/backup"
	"kontor/store/backup/continuous"
	"kontor/store/datadir"
	"kontor/store/inspect"
	"kontor/store/migrations"
	"kontor/store/transfer"
)

type copyCommand struct{ From, To string }

func (l *commandLine) copy() *cobra.Command {
	c := &copyCommand{}
	cmd := &cobra.Command{
		Use: "copy --from=<dir|url> --to=<url|dir>", Short: "Copy an installation between a data directory and a PostgreSQL database.",
		Long: `Neither side may be served meanwhile. The target becomes usable when all tables
were compared with the source and the audit trail was verified. After an
interruption, the same command continues.

The master key does not change. To a database: the key is that of the directory,
and every node needs it in KONTOR_SECRET_KEY. To a directory: set
KONTOR_SECRET_KEY for the command; put it into the directory with
"kontor key import", or set it for each start. A password in a URL is visible to
other users of the machine: set PGPASSWORD or use a password file instead.`,
		Example: "kontor copy --from /var/lib/kontor --to postgres://kontor@db.example/kontor?sslmode=verify-full\n" +
			"kontor copy --from postgres://kontor@db.example/kontor?sslmode=verify-full --to /var/lib/kontor-new",
		Args: arguments(), RunE: l.run(c.Run),
	}
	cmd.Flags().StringVar(&c.From, "from", "", "Data `directory`, or URL of a PostgreSQL database, that is copied.")
	cmd.Flags().StringVar(&c.To, "to", "", "Empty PostgreSQL `database`, or empty data directory, that is filled.")
	required(cmd, "from", "to")
	return cmd
}

// Run copies the database.
func (c *copyCommand) Run(ctx context.Context, p Process, r *settings.Result) error {
	secrets := r.Settings.Secrets
	o := transfer.Options{SecretKey: string(secrets.SecretKey), PreviousKey: string(secrets.PreviousKey), Migrations: migrations.Files}
	var err error
	if o.From, err = placeOf("--from", c.From); err != nil {
		return err
	}
	if o.To, err = placeOf("--to", c.To); err != nil {
		return err
	}
	if o.From.URL != "" && o.SecretKey == "" {
		return errors.New("KONTOR_SECRET_KEY must be set to the master key of " + o.From.Name)
	}
	if err := mayLeave(ctx, o.From); err != nil {
		return err
	}
	p.warn(r)
	compared, oldForm := int64(0), error(nil)
	o.Further = func(ctx context.Context, e *audittrail.Evidence) (err error) {
		compared, oldForm, err = checkRecords(ctx, e)
		return err
	}
	progress := &copyProgress{out: p.Stdout}
	o.Progress = progress.show
	report, err := transfer.Run(ctx, o)
	if err != nil {
		if ctx.Err() != nil {
			err = errors.New("the copy was interrupted; the same command continues it")
		}
		return err
	}
	return describeCopy(p, o, report, describeRecords(describeCheck(report.Check, o.To.URL != ""), compared, oldForm))
}

// mayLeave rejects the copy of a sandbox to a database server: nodes cannot serve it.
func mayLeave(ctx context.Context, from transfer.Place) error {
	if from.URL != "" {
		return nil // the copy says what is wrong with the source
	}
	if purpose, err := inspect.PurposeOf(ctx, inspect.Source{Dir: from.Dir}); err != nil || purpose != inspect.Sandbox {
		return nil //nolint:nilerr // as above
	}
	return fmt.Errorf("%s is a sandbox, which only a data directory can hold; to move it, use \"kontor backup\" and \"kontor restore\"", from.Name)
}

// placeOf reads a flag.
func placeOf(flag, text string) (transfer.Place, error) {
	if !strings.Contains(text, "://") {
		return transfer.Place{Dir: text, Name: text}, nil
	}
	if err := settings.CheckDatabaseURL(text); err != nil {
		return transfer.Place{}, fmt.Errorf("%s %w", flag, err)
	}
	return transfer.Place{URL: text, Name: settings.DatabaseName(text)}, nil
}

// describeCopy prints what was copied, and what to do next.
func describeCopy(p Process, o transfer.Options, report transfer.Report, checked string) error {
	lines := []string{fmt.Sprintf("%s was copied to %s: %d rows in %d tables are the same on both sides; %s",
		o.From.Name, o.To.Name, report.Rows(), len(report.Tables), checked)}
	if o.To.URL != "" {
		lines = append(lines, "Start each node with this database in KONTOR_DATA_URL and the master key in KONTOR_SECRET_KEY. Do not start a server with "+o.From.Dir+" any more.")
		if o.SecretKey == "" {
			lines = append(lines, "The master key is in "+datadir.At(o.From.Dir).File(datadir.Key)+".")
		}
	} else {
		lines = append(lines, "Set KONTOR_SECRET_KEY for each start, or put the key into the directory: "+
			`printf %s "$KONTOR_SECRET_KEY" | kontor key import - --data.dir=`+o.To.Dir,
			"Do not start a node with the database any more.")
	}
	return p.say("%s", strings.Join(lines, "\n"))
}

// copyProgress prints the progress of a copy.
type copyProgress struct {
	out  io.Writer
	last transfer.Progress
}

// show prints a line for each table that has rows, and for every 10,000 rows of it.
func (c *copyProgress) show(p transfer.Progress) {
	if c.last.Step != p.Step {
		switch p.Step {
		case transfer.Comparing:
			fmt.Fprintln(c.out, "comparing both sides")
		case transfer.Checking:
			fmt.Fprintln(c.out, "checking the copy")
		}
	}
	if p.Step == transfer.Copying && p.Rows > 0 {
		fmt.Fprintf(c.out, "%s: %d of %d rows\n", p.Table, p.Rows, p.Of)
	}
	c.last = p
}

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
		Args: arguments(&c.From), RunE: l.run(c.Run),
	}
	c.add(cmd.Flags())
	cmd.Flags().BoolVar(&c.List, "list", false, "Only list the lines that a continuous backup holds, with their commits, gaps and forks. With the master key it says whose lines they are.")
	cmd.Flags().Var(&c.Erasures, "erasures", "Ledger of erasures written by \"kontor privacy ledger\"; the next start applies it again.")
	return cmd
}

// Run restores the backup.
func (c *restoreCommand) Run(ctx context.Context, p Process, r *settings.Result) error {
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
	dir := r.Settings.Data.Dir
	lines := []string{fmt.Sprintf("%s was restored to %s: %s", what, dir, describeCheck(restored.Report, false))}
	if target != nil || r.Settings.Backup.URL != "" {
		lines = append(lines, fmt.Sprintf("It is the incarnation %s. It ships nothing to the backup.url of the server that it replaces, unless you start it with backup.line=%[1]s.",
			restored.Incarnation))
	}
	if erased > 0 {
		lines = append(lines, fmt.Sprintf("The ledger has %d erasures. The next start applies those that the backup lacks, before it serves requests.", erased))
	}
	if (r.Settings.Secrets.SecretKey == "" || target != nil) && !datadir.At(dir).Has(datadir.Key) {
		lines = append(lines, "The backup does not contain the master key. Before you start the server, put the key into place: kontor key import FILE --data.dir="+dir,
			"Alternatively, set KONTOR_SECRET_KEY for each start.")
	}
	return p.say("%s", strings.Join(lines, "\n"))
}

// target returns the target of a continuous backup, or nil for files.
func (c *restoreCommand) target() (continuous.Target, error) {
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

func (c *restoreCommand) fromTarget(ctx context.Context, p Process, target continuous.Target, r *settings.Result) (continuous.Restored, error) {
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

func (c *restoreCommand) fromFiles(ctx context.Context, stdin io.Reader, r *settings.Result) (backup.Restored, error) {
	parts, err := c.parts(stdin)
	if err != nil {
		return backup.Restored{}, err
	}
	return backup.RestoreParts(ctx, parts, databaseOf(r))
}

// parts returns the backups to restore.
func (c *restoreCommand) parts(stdin io.Reader) (parts []backup.Part, err error) {
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
