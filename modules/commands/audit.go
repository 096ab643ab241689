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
	"kontor/store/inspect"
)

// audit returns the commands about the audit trail. The server may be running.
func (l *commandLine) audit() *cobra.Command {
	return group("audit", "Export the audit trail and verify an export.", l.exportAudit(), l.verifyAudit(), l.auditKey())
}

type auditExportCommand struct {
	File string
	From int64
}

func (l *commandLine) exportAudit() *cobra.Command {
	c := &auditExportCommand{File: standardStream}
	cmd := &cobra.Command{
		Use: "export [<file>]", Short: "Export the audit trail as JSON Lines, with a signed head.",
		Long:    "An existing file is rejected. Without a file, or with \"-\", the export is written\nto standard output. The server may be running.",
		Example: "kontor audit export audit.jsonl --from=1000", Args: arguments(&c.File), RunE: l.run(c),
	}
	cmd.Flags().Int64Var(&c.From, "from", 1, "`Number` of the first entry.")
	return cmd
}

// Run writes the export. It removes an incomplete file.
func (c auditExportCommand) Run(ctx context.Context, p Process, r *settings.Result) error {
	p.warn(r)
	from, err := readable(r)
	if err != nil {
		return err
	}
	if c.File == "-" {
		_, err := inspect.ExportAudit(ctx, from, c.From, p.Stdout)
		return err
	}
	file, err := os.OpenFile(c.File, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	entries, err := inspect.ExportAudit(ctx, from, c.From, file)
	if err == nil {
		err = file.Sync()
	}
	if err = errors.Join(err, file.Close()); err != nil {
		return errors.Join(err, os.Remove(c.File))
	}
	_, err = fmt.Fprintf(p.Stdout, "%d audit entries were exported to %s\n", entries, c.File)
	return err
}

type auditVerifyCommand struct{ File, Key string }

func (l *commandLine) verifyAudit() *cobra.Command {
	c := &auditVerifyCommand{}
	cmd := &cobra.Command{
		Use: "verify <file>", Short: "Verify every hash and signature of an export.",
		Long: `The file is the export; "-" reads standard input. Neither the database nor the
master key is needed. Without --key, compare the printed key with that of the
server: anybody can sign a file with a key of their own.`,
		Example: `kontor audit verify audit.jsonl --key="$(ssh bank kontor audit key)"`,
		Args:    arguments(&c.File), RunE: func(*cobra.Command, []string) error { return c.Run(l.process) },
	}
	cmd.Flags().StringVar(&c.Key, "key", "", "The public `keys` that \"kontor audit key\" prints on the server, with space between them. Default: the key in the file.")
	return cmd
}

// Run verifies the export.
func (c auditVerifyCommand) Run(p Process) error {
	var in io.Reader = p.Stdin
	if c.File != "-" {
		file, err := os.Open(c.File)
		if err != nil {
			return err
		}
		defer file.Close()
		in = file
	}
	report, err := audittrail.VerifyExport(in, c.Key)
	if err != nil {
		return fmt.Errorf("%s is not a valid export: %w", c.File, err)
	}
	text := fmt.Sprintf("%s is valid: entries %d to %d, signed at %s", c.File, report.From, report.To, report.SignedAt)
	if c.Key == "" {
		text += "\nIt is signed with the key " + report.PublicKey + ". Compare this key with the output of \"kontor audit key\" on the server."
	}
	_, err = fmt.Fprintln(p.Stdout, text)
	return err
}

type auditKeyCommand struct{}

func (l *commandLine) auditKey() *cobra.Command {
	return &cobra.Command{
		Use: "key", Short: "Print the public keys that verify exports.",
		Long: `The first line is the present key. After rotations of the master key, each
former key follows on a line of its own: they verify older exports.`,
		Example: "kontor audit key", Args: arguments(), RunE: l.run(auditKeyCommand{}),
	}
}

// Run prints the public keys.
func (auditKeyCommand) Run(ctx context.Context, p Process, r *settings.Result) error {
	p.warn(r)
	from, err := readable(r)
	if err != nil {
		return err
	}
	keys, err := inspect.PublicExportKeys(ctx, from)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(p.Stdout, strings.Join(keys, "\n"))
	return err
}
