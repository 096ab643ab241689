package commands

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"kontor/server/settings"
	"kontor/store/audittrail"
	"kontor/store/inspect"
)

// auditCommand groups what an operator does with the audit trail. A running server need not be stopped.
type auditCommand struct {
	Export auditExportCommand `cmd:"" help:"Write the audit trail as JSON Lines, with a signed head."`
	Verify auditVerifyCommand `cmd:"" help:"Verify an export: every hash and every signature. Needs neither the database nor the master key."`
	Key    auditKeyCommand    `cmd:"" help:"Print the public key that verifies exports."`
}

type auditExportCommand struct {
	File string `arg:"" optional:"" default:"-" help:"New file for the export; an existing one is refused. Without it, or with -, the export goes to standard output."`
	From int64  `default:"1" help:"Number of the first entry." placeholder:"SEQ"`
}

// Run writes the export. A file that could not be completed is removed.
func (c auditExportCommand) Run(ctx context.Context, p Process, r *settings.Result) error {
	p.warn(r)
	if c.File == "-" {
		_, err := inspect.ExportAudit(ctx, databaseOf(r), c.From, p.Stdout)
		return err
	}
	file, err := os.OpenFile(c.File, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	entries, err := inspect.ExportAudit(ctx, databaseOf(r), c.From, file)
	if err == nil {
		err = file.Sync()
	}
	if err = errors.Join(err, file.Close()); err != nil {
		return errors.Join(err, os.Remove(c.File))
	}
	_, err = fmt.Fprintf(p.Stdout, "%d audit entries were exported to %s\n", entries, c.File)
	return err
}

type auditVerifyCommand struct {
	File string `arg:"" help:"The export; - reads standard input."`
	Key  string `help:"The public key that \"kontor audit key\" prints on the server. Without it the key in the file is taken." placeholder:"KEY"`
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
		return fmt.Errorf("%s does not hold: %w", c.File, err)
	}
	text := fmt.Sprintf("%s holds: entries %d to %d, signed at %s", c.File, report.From, report.To, report.SignedAt)
	if c.Key == "" {
		text += "\nIt is signed with the key " + report.PublicKey + "; compare that with what \"kontor audit key\" prints on the server."
	}
	_, err = fmt.Fprintln(p.Stdout, text)
	return err
}

type auditKeyCommand struct{}

// Run prints the public key.
func (auditKeyCommand) Run(p Process, r *settings.Result) error {
	p.warn(r)
	key, err := inspect.PublicExportKey(databaseOf(r))
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(p.Stdout, key)
	return err
}
