package commands

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"kontor/server/settings"
	"kontor/store/backup"
	"kontor/store/datadir"
)

// key returns the commands about keys.
func (l *commandLine) key() *cobra.Command {
	return group("key", "Rotate, export and import the master key.", l.rotateKey(), l.keyStatus(), l.exportKey(), l.importKey(), l.revokeUnused())
}

type keyExportCommand struct {
	File  string
	Force bool
}

func (l *commandLine) exportKey() *cobra.Command {
	c := &keyExportCommand{}
	cmd := &cobra.Command{
		Use: "export <file>", Short: "Write the master key to a file, to keep it apart from the backups.",
		Long: `The file gets the mode 0600; an existing file is rejected. "-" is standard
output. The server may be running.

With the key and a backup, anybody can read sealed values and sign in as
anybody: keep the two apart. The command reads the data directory without
opening the database, so that the export is not in the audit trail.`,
		Example: "kontor key export /media/safe/kontor.key\nkontor key export - | gpg --encrypt --recipient safe > kontor.key.gpg",
		Args:    arguments(&c.File), RunE: l.run(c),
	}
	cmd.Flags().BoolVar(&c.Force, "force", false, "Print the key although standard output is a terminal.")
	return cmd
}

// Run writes the key.
func (c keyExportCommand) Run(ctx context.Context, p Process, r *settings.Result) error {
	if err := notShared(r, keyIsGiven); err != nil {
		return err
	}
	if c.File != "-" {
		p.warn(r)
		if err := backup.ExportKey(ctx, databaseOf(r), c.File); err != nil {
			return err
		}
		_, err := fmt.Fprintf(p.Stdout, "the master key of %s was exported to %s; keep it apart from the backups\n", r.Settings.Data.Dir, c.File)
		return err
	}
	if isTerminal(p.Stdout) && !c.Force {
		return errors.New("the key would appear on the terminal; name a file, redirect the output, or use --force")
	}
	p.warn(r)
	text, err := backup.ReadKey(ctx, databaseOf(r))
	if err != nil {
		return err
	}
	_, err = p.Stdout.Write(text)
	return err
}

type keyImportCommand struct{ File string }

func (l *commandLine) importKey() *cobra.Command {
	c := &keyImportCommand{}
	return &cobra.Command{
		Use: "import <file>", Short: "Put the master key into a restored data directory.",
		Long: `The file was written by "kontor key export"; "-" reads standard input. The
server must be stopped. The key is compared with the database first: the key of
another database is rejected. A key that is in the directory is never replaced
by another one. The import is not in the audit trail.`,
		Example: "kontor key import /media/safe/kontor.key --data.dir=/var/lib/kontor", Args: arguments(&c.File), RunE: l.run(c),
	}
}

// maxKeyFileBytes exceeds the length of every key file.
const maxKeyFileBytes = 4 << 10

// Run imports the key.
func (c keyImportCommand) Run(ctx context.Context, p Process, r *settings.Result) error {
	p.warn(r)
	if err := notShared(r, keyIsGiven); err != nil {
		return err
	}
	text, err := c.read(p)
	if err != nil {
		return err
	}
	if err := backup.ImportKey(ctx, r.Settings.Data.Dir, text); err != nil {
		return err
	}
	_, err = fmt.Fprintf(p.Stdout, "the master key was imported to %s; run \"kontor check\" before you start the server\n", r.Settings.Data.Dir)
	return err
}

func (c keyImportCommand) read(p Process) (string, error) {
	in := p.Stdin
	if c.File != "-" {
		file, err := os.Open(c.File)
		if err != nil {
			return "", fmt.Errorf("%s cannot be read: %w", c.File, datadir.Cause(err))
		}
		defer file.Close()
		in = file
	}
	text, err := io.ReadAll(io.LimitReader(in, maxKeyFileBytes))
	if err != nil {
		return "", fmt.Errorf("%s cannot be read: %w", c.File, datadir.Cause(err))
	}
	return string(text), nil
}
