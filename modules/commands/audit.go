package commands

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"kontor/server/settings"
	"kontor/store/audittrail"
	"kontor/store/inspect"
)

// auditCommand groups the commands about the audit trail. The server may be running.
type auditCommand struct {
	Export auditExportCommand `cmd:"" help:"Export the audit trail as JSON Lines, with a signed head."`
	Verify auditVerifyCommand `cmd:"" help:"Verify every hash and signature of an export."`
	Key    auditKeyCommand    `cmd:"" help:"Print the public keys that verify exports."`
}

type auditExportCommand struct {
	File string `arg:"" optional:"" default:"-" help:"New file for the export; an existing file is rejected. Default: standard output (-)."`
	From int64  `default:"1" help:"Number of the first entry." placeholder:"SEQ"`
}

// Help is shown by "kontor audit export --help".
func (auditExportCommand) Help() string { return "The server may be running." }

func (auditExportCommand) examples() []string {
	return []string{"kontor audit export audit.jsonl --from=1000"}
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

type auditVerifyCommand struct {
	File string `arg:"" help:"The export; - reads standard input."`
	Key  string `help:"The public keys that \"kontor audit key\" prints on the server, with space between them. Default: the key in the file." placeholder:"KEY"`
}

// Help is shown by "kontor audit verify --help".
func (auditVerifyCommand) Help() string {
	return "Neither the database nor the master key is needed. Without --key, compare the printed key with that of the server: " +
		"anybody can sign a file with a key of their own."
}

func (auditVerifyCommand) examples() []string {
	return []string{`kontor audit verify audit.jsonl --key="$(ssh bank kontor audit key)"`}
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

func (auditKeyCommand) examples() []string { return []string{"kontor audit key"} }

// Help is shown by "kontor audit key --help".
func (auditKeyCommand) Help() string {
	return "The first line is the present key. After rotations of the master key, each former key follows on a line of its own: they verify older exports."
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
