// Package commands is the command line of Kontor: its commands, their output and their exit codes.
//
// Each command is a struct. Its fields are its flags and arguments, and its method Run does the work. Every setting is a
// flag of every command; the flags are generated from the registry in server/settings. A command that fails prints one
// line to standard error and exits with 1.
package commands

import (
	"context"
	"fmt"
	"io"

	"kontor/server/settings"
)

// Process is what a command uses of its process, so that a test can run commands without starting one.
type Process struct {
	Args    []string // without the name of the program
	Environ []string
	Stdin   io.Reader
	Stdout  io.Writer
	Stderr  io.Writer
}

// tree is the tree of commands, and the flags of all of them. The flags of the settings are added to these.
type tree struct {
	ShowHelp    bool   `name:"help" short:"h" help:"Show context-sensitive help."`
	Config      string `help:"YAML file with settings (environment: KONTOR_CONFIG)." placeholder:"FILE"`
	ShowVersion bool   `name:"version" help:"Print the version."`

	Serve      serveCommand      `cmd:"" help:"Start the server. This is the default command."`
	Ready      readyCommand      `cmd:"" help:"Ask the running server whether it is ready."`
	User       userCommand       `cmd:"" help:"Create users, set their passwords and roles, and reset their second factors."`
	Service    serviceCommand    `cmd:"" help:"Create service accounts for programs, and their tokens."`
	APIKey     apiKeyCommand     `cmd:"" name:"apikey" help:"Create, list and revoke API keys."`
	Listen     listenCommand     `cmd:"" help:"Print the changes of a running server, or forward them as webhooks."`
	QRBill     qrbillCommand     `cmd:"" name:"qrbill" help:"Read Swiss QR-bills from files and print them as JSON."`
	Backup     backupCommand     `cmd:"" help:"Back up the data directory to one file."`
	Restore    restoreCommand    `cmd:"" help:"Restore a backup to an empty data directory."`
	Copy       copyCommand       `cmd:"" help:"Copy an installation between a data directory and a PostgreSQL database."`
	Key        keyCommand        `cmd:"" help:"Rotate, export and import the master key."`
	Check      checkCommand      `cmd:"" help:"Check the database, the audit trail, and the records against it."`
	Privacy    privacyCommand    `cmd:"" help:"Export the ledger of erasures."`
	Audit      auditCommand      `cmd:"" help:"Export the audit trail and verify an export."`
	Settings   settingsCommand   `cmd:"" help:"Show the value, the source and the meaning of every setting."`
	Completion completionCommand `cmd:"" help:"Print a script that completes commands and flags in a shell."`
	Version    versionCommand    `cmd:"" help:"Print the version."`
}

// defaultCommand runs when no command is named.
const defaultCommand = "serve"

// Run executes the command that the arguments name and returns the exit code of the process. When the context ends, a
// server shuts down gracefully and every other command is cancelled.
func Run(ctx context.Context, p Process) int {
	args := p.Args
	if len(args) > 0 && args[0] == "help" { // "kontor help backup" is "kontor backup --help"
		args = append(args[1:len(args):len(args)], "--help")
	}
	line := newCommandLine()
	if len(args) > 0 && args[0] == completeArgument {
		line.complete(p.Stdout, args[1:])
		return 0
	}
	if err := line.run(ctx, p, args); err != nil {
		return p.fail(err)
	}
	return 0
}

// fail prints the error as one line and returns the exit code.
func (p Process) fail(err error) int {
	fmt.Fprintln(p.Stderr, "kontor: "+explain(err))
	return 1
}

// commandLine is the tree of commands and the values that a command line gives to their flags. It is used once.
type commandLine struct {
	tree  tree
	root  *command
	flags *settingFlags
}

func newCommandLine() *commandLine {
	l := &commandLine{flags: newSettingFlags()}
	l.root = newCommand("kontor", "Run the Kontor banking platform. Without a command, start the server.", &l.tree)
	l.root.flags.AddFlagSet(l.flags.set)
	return l
}

func (l *commandLine) run(ctx context.Context, p Process, args []string) error {
	at, words, err := l.parse(args)
	switch { // an incomplete command with --help is no error
	case l.tree.ShowHelp:
		return l.printHelp(p.Stdout, at)
	case l.tree.ShowVersion:
		return versionCommand{}.Run(p)
	}
	if at == l.root && len(words) == 0 {
		at = at.child(defaultCommand)
	}
	if err == nil {
		err = at.fill(words)
	}
	if err != nil {
		return at.usageError(err)
	}
	if command, ok := at.target.(offlineRunner); ok {
		return command.Run(p)
	}
	r, err := settings.Load(settings.Input{Flags: l.flags.given(), Environ: p.Environ, File: l.tree.Config})
	if err != nil {
		return err
	}
	return at.target.(runner).Run(ctx, p, r)
}

// warn prints the warnings about the settings.
func (p Process) warn(r *settings.Result) {
	for _, w := range r.Warnings {
		fmt.Fprintln(p.Stderr, "kontor: warning: "+w)
	}
}
