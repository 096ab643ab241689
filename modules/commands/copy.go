package commands

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"kontor/server/settings"
	"kontor/store/audittrail"
	"kontor/store/datadir"
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
		Args: arguments(), RunE: l.run(c),
	}
	cmd.Flags().StringVar(&c.From, "from", "", "Data `directory`, or URL of a PostgreSQL database, that is copied.")
	cmd.Flags().StringVar(&c.To, "to", "", "Empty PostgreSQL `database`, or empty data directory, that is filled.")
	required(cmd, "from", "to")
	return cmd
}

// Run copies the database.
func (c copyCommand) Run(ctx context.Context, p Process, r *settings.Result) error {
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
	for _, w := range r.Warnings {
		fmt.Fprintln(p.Stderr, "kontor: warning: "+w)
	}
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
	return c.describe(p.Stdout, o, report, describeRecords(describeCheck(report.Check, o.To.URL != ""), compared, oldForm))
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

// describe prints what was copied, and what to do next.
func (c copyCommand) describe(out io.Writer, o transfer.Options, report transfer.Report, checked string) error {
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
	_, err := fmt.Fprintln(out, strings.Join(lines, "\n"))
	return err
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
