package commands

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"kontor/server/settings"
	"kontor/store/backup"
	"kontor/store/datadir"
)

// keyCommand groups the commands about keys.
type keyCommand struct {
	Rotate keyRotateCommand `cmd:"" help:"Replace the master key, or the key that signs access tokens."`
	Status keyStatusCommand `cmd:"" help:"Show the age of the keys, and what remains of former ones."`
	Export keyExportCommand `cmd:"" help:"Write the master key to a file, to keep it apart from the backups."`
	Import keyImportCommand `cmd:"" help:"Put the master key into a restored data directory."`

	RevokeUnused keyRevokeUnusedCommand `cmd:"" name:"revoke-unused" help:"Revoke API keys that have not been used since a rotation."`
}

type keyExportCommand struct {
	File  string `arg:"" help:"New file for the key, with mode 0600; an existing file is rejected. - is standard output." type:"path"`
	Force bool   `help:"Print the key although standard output is a terminal."`
}

// Help is shown by "kontor key export --help".
func (keyExportCommand) Help() string {
	return "The server may be running. With the key and a backup, anybody can read sealed values and sign in as anybody: keep the two apart. " +
		"The command reads the data directory without opening the database, so that the export is not in the audit trail."
}

func (keyExportCommand) examples() []string {
	return []string{"kontor key export /media/safe/kontor.key", "kontor key export - | gpg --encrypt --recipient safe > kontor.key.gpg"}
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

type keyImportCommand struct {
	File string `arg:"" help:"A file written by \"kontor key export\"; - reads standard input." type:"path"`
}

// Help is shown by "kontor key import --help".
func (keyImportCommand) Help() string {
	return "The server must be stopped. The key is compared with the database first: the key of another database is rejected. " +
		"A key that is in the directory is never replaced by another one. The import is not in the audit trail."
}

func (keyImportCommand) examples() []string {
	return []string{"kontor key import /media/safe/kontor.key --data.dir=/var/lib/kontor"}
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
