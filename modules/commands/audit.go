package commands

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"kontor/modules/app"
	"kontor/modules/duty/screening"
	"kontor/server/settings"
	"kontor/store/audittrail"
	"kontor/store/backup"
	"kontor/store/datadir"
	"kontor/store/inspect"
)

// audit returns the commands about the audit trail. The server may be running.
func (l *commandLine) audit() *cobra.Command {
	return group("audit", "Export the audit trail and verify an export.", l.exportAudit(), l.verifyAudit(), l.auditKey())
}

func (l *commandLine) exportAudit() *cobra.Command {
	name := standardStream
	var first int64
	cmd := &cobra.Command{
		Use: "export [<file>]", Short: "Export the audit trail as JSON Lines, with a signed head.",
		Long:    "An existing file is rejected. Without a file, or with \"-\", the export is written\nto standard output. The server may be running.",
		Example: "kontor audit export audit.jsonl --from=1000", Args: arguments(&name),
		RunE: l.run(func(ctx context.Context, p Process, r *settings.Result) error {
			return exportAudit(ctx, p, r, name, first)
		}),
	}
	cmd.Flags().Int64Var(&first, "from", 1, "`Number` of the first entry.")
	return cmd
}

// exportAudit writes the export. It removes an incomplete file.
func exportAudit(ctx context.Context, p Process, r *settings.Result, name string, first int64) error {
	p.warn(r)
	from, err := readable(r)
	if err != nil {
		return err
	}
	if name == standardStream {
		_, err := inspect.ExportAudit(ctx, from, first, p.Stdout)
		return err
	}
	file, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	entries, err := inspect.ExportAudit(ctx, from, first, file)
	if err == nil {
		err = file.Sync()
	}
	if err = errors.Join(err, file.Close()); err != nil {
		return errors.Join(err, os.Remove(name))
	}
	return p.say("%d audit entries were exported to %s", entries, name)
}

func (l *commandLine) verifyAudit() *cobra.Command {
	var name, key string
	cmd := &cobra.Command{
		Use: "verify <file>", Short: "Verify every hash and signature of an export.",
		Long: `The file is the export; "-" reads standard input. Neither the database nor the
master key is needed. Without --key, compare the printed key with that of the
server: anybody can sign a file with a key of their own.`,
		Example: `kontor audit verify audit.jsonl --key="$(ssh bank kontor audit key)"`,
		Args:    arguments(&name), RunE: func(*cobra.Command, []string) error { return verifyAudit(l.process, name, key) },
	}
	cmd.Flags().StringVar(&key, "key", "", "The public `keys` that \"kontor audit key\" prints on the server, with space between them. Default: the key in the file.")
	return cmd
}

func verifyAudit(p Process, name, key string) error {
	in, err := p.open(name)
	if err != nil {
		return err
	}
	defer in.Close()
	report, err := audittrail.VerifyExport(in, key)
	if err != nil {
		return fmt.Errorf("%s is not a valid export: %w", name, err)
	}
	text := fmt.Sprintf("%s is valid: entries %d to %d, signed at %s", name, report.From, report.To, report.SignedAt)
	if key == "" {
		text += "\nIt is signed with the key " + report.PublicKey + ". Compare this key with the output of \"kontor audit key\" on the server."
	}
	return p.say("%s", text)
}

func (l *commandLine) auditKey() *cobra.Command {
	return &cobra.Command{
		Use: "key", Short: "Print the public keys that verify exports.",
		Long: `The first line is the present key. After rotations of the master key, each
former key follows on a line of its own: they verify older exports.`,
		Example: "kontor audit key", Args: arguments(), RunE: l.run(func(ctx context.Context, p Process, r *settings.Result) error {
			p.warn(r)
			from, err := readable(r)
			if err != nil {
				return err
			}
			keys, err := inspect.PublicExportKeys(ctx, from)
			if err != nil {
				return err
			}
			return p.say("%s", strings.Join(keys, "\n"))
		}),
	}
}

// privacy returns the commands about personal data.
func (l *commandLine) privacy() *cobra.Command {
	return group("privacy", "Export the ledger of erasures.", l.exportLedger(), l.applyLedger())
}

func (l *commandLine) exportLedger() *cobra.Command {
	var name string
	return &cobra.Command{
		Use: "ledger <file>", Short: "Write the ledger of erasures to a file, to keep it with the backups.",
		Long: `An existing file is rejected. "-" is standard output. The server may be running.
The ledger holds ids and times, no personal data. After the loss of the data
directory, pass it to "kontor restore --erasures", so that data that were erased
after the backup are erased again. For a PostgreSQL database, pass it to
"kontor privacy apply" after the restore.`,
		Example: "kontor privacy ledger /backup/kontor.erasures", Args: arguments(&name),
		RunE: l.run(func(ctx context.Context, p Process, r *settings.Result) error { return exportLedger(ctx, p, r, name) }),
	}
}

func exportLedger(ctx context.Context, p Process, r *settings.Result, name string) error {
	p.warn(r)
	if err := requireData(ctx, r); err != nil {
		return err
	}
	ledger, err := readLedger(ctx, p, r)
	if err != nil {
		return err
	}
	if name == standardStream {
		_, err := p.Stdout.Write(ledger)
		return err
	}
	if _, err := os.Lstat(name); err == nil {
		return fmt.Errorf("%s exists already; name a new file", name)
	}
	if err := datadir.Write(name, ledger); err != nil {
		return fmt.Errorf("%s cannot be written: %w", name, datadir.Cause(err))
	}
	return p.say("the ledger of erasures of %s was written to %s", placeName(r), name)
}

// readLedger returns the ledger of erasures. A PostgreSQL database has none beside it: its table is encoded.
func readLedger(ctx context.Context, p Process, r *settings.Result) (ledger []byte, err error) {
	if !isShared(r) {
		return backup.ReadLedger(r.Settings.Data.Dir)
	}
	err = administer(ctx, p, r, func(ctx context.Context, m *app.Modules) error {
		ledger, _, err = m.Privacy.Ledger(ctx)
		return err
	})
	return ledger, err
}

func (l *commandLine) applyLedger() *cobra.Command {
	var name string
	return &cobra.Command{
		Use: "apply <file>", Short: "Repeat the erasures of a ledger in a PostgreSQL database that was restored.",
		Long: `"kontor privacy ledger" has written the file. A backup of the database from
before an erasure still holds the data. After its restore, and before a node
serves requests, apply the newest ledger: the data are erased again. Erasures
that the database has are skipped. With a data directory, use
"kontor restore --erasures" instead.`,
		Example: "kontor privacy apply /backup/kontor.erasures", Args: arguments(&name),
		RunE: l.run(func(ctx context.Context, p Process, r *settings.Result) error {
			if !isShared(r) {
				return errors.New("a data directory has a ledger of its own, which every start applies; use \"kontor restore --erasures\"")
			}
			ledger, err := os.ReadFile(name)
			if err != nil {
				return fmt.Errorf("%s cannot be read: %w", name, datadir.Cause(err))
			}
			return administer(ctx, p, r, func(ctx context.Context, m *app.Modules) error {
				entries, repeated, err := m.Privacy.Apply(ctx, ledger)
				if err != nil {
					return fmt.Errorf("%s: %w", name, err)
				}
				return p.say("the ledger has %d erasures; %d were repeated in %s", entries, repeated, placeName(r))
			})
		}),
	}
}

// screening groups the commands about sanctions lists. A server with a data directory must be stopped, because it holds the directory.
func (l *commandLine) screening() *cobra.Command {
	return group("screening", "Load, list and drop sanctions lists.", l.loadList(), l.listLists(), l.dropList())
}

const listsHelp = "A running server loads lists from the folder of the setting screening.dir, or over\nPOST /v1/screening/lists.\n\n" + stoppedHelp

func (l *commandLine) loadList() *cobra.Command {
	var path, name string
	cmd := &cobra.Command{
		Use: "load <file>", Short: "Load a list, or replace the one of the same name.",
		Long:    "The file is a list of SECO, the United Nations, the European Union, OFAC or\nOpenSanctions, or a folder with the files of OFAC.\n\n" + listsHelp,
		Example: "kontor screening load consolidated-list.xml --name=SECO", Args: arguments(&path),
		RunE: l.run(func(ctx context.Context, p Process, r *settings.Result) error {
			file, err := screening.FileAt(path, cmp.Or(name, strings.TrimSuffix(filepath.Base(path), filepath.Ext(path))))
			if err != nil {
				return err
			}
			return administer(ctx, p, r, func(ctx context.Context, m *app.Modules) error {
				l, err := m.Screening.Load(ctx, file)
				if err != nil {
					return err
				}
				title := strings.TrimSpace(printable(l.Name) + " " + printable(l.Version))
				return p.say("%s: %d entries, %d added, %d changed, %d removed", title, l.Entries, l.Added, l.Changed, l.Removed)
			})
		}),
	}
	cmd.Flags().StringVar(&name, "name", "", "`Name` of the list. Default: that of the file without its extension.")
	return cmd
}

func (l *commandLine) listLists() *cobra.Command {
	return &cobra.Command{
		Use: "lists", Short: "List the lists that are in force.", Long: listsHelp, Example: "kontor screening lists", Args: arguments(),
		RunE: l.administer(func(ctx context.Context, m *app.Modules) error {
			all, err := allRows(ctx, m.Screening.Lists)
			if err != nil {
				return err
			}
			table := tabwriter.NewWriter(l.process.Stdout, 0, 0, 2, ' ', 0)
			fmt.Fprintln(table, "ID\tFORMAT\tVERSION\tENTRIES\tLOADED\tNAME")
			for _, l := range all {
				fmt.Fprintf(table, "%s\t%s\t%s\t%d\t%s\t%s\n", l.ID, l.Format, printable(l.Version), l.Entries, l.LoadedAt, printable(l.Name))
			}
			return table.Flush()
		}),
	}
}

func (l *commandLine) dropList() *cobra.Command {
	var id string
	return &cobra.Command{
		Use: "drop <id>", Short: "Drop a list.", Long: "\"kontor screening lists\" prints the ids.\n\n" + listsHelp,
		Example: "kontor screening drop 01a1fb8a-2c0a-7d94-ab9c-5d46a808af71", Args: arguments(&id),
		RunE: l.administer(func(ctx context.Context, m *app.Modules) error {
			if err := m.Screening.Drop(ctx, id); err != nil {
				return err
			}
			return l.process.say("%s was dropped", printable(id))
		}),
	}
}
