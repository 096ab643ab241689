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

	"github.com/alecthomas/kong"

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

// tree is the tree of commands and flags.
type tree struct {
	Config string `help:"YAML file with settings (environment: KONTOR_CONFIG)." placeholder:"FILE"`

	ShowVersion versionFlag `name:"version" help:"Print the version."`

	kong.Plugins // one flag for each setting

	Serve      serveCommand      `cmd:"" default:"withargs" help:"Start the server. This is the default command."`
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

// Run executes the command that the arguments name and returns the exit code of the process. When the context ends, a
// server shuts down gracefully and every other command is cancelled.
func Run(ctx context.Context, p Process) int {
	args := p.Args
	if len(args) > 0 && args[0] == "help" { // "kontor help backup" is "kontor backup --help"
		args = append(args[1:len(args):len(args)], "--help")
	}
	line, err := newCommandLine(ctx, p)
	if err != nil {
		return p.fail(err)
	}
	if len(args) > 0 && args[0] == completeArgument {
		line.complete(p.Stdout, args[1:])
		return 0
	}
	args = line.joinNegativeNumbers(args)
	parsed, err := line.parser.Parse(args)
	if line.printed { // an incomplete command with --help is no error
		return 0
	}
	if err != nil {
		return p.fail(line.usage(args, err))
	}
	if err := parsed.Run(); err != nil {
		return p.fail(err)
	}
	return 0
}

// fail prints the error as one line and returns the exit code.
func (p Process) fail(err error) int {
	fmt.Fprintln(p.Stderr, "kontor: "+explain(err))
	return 1
}

// commandLine is the parser with the flags of the settings.
type commandLine struct {
	tree    tree
	parser  *kong.Kong
	printed bool // set where the parser would end the process after printing the help or the version
}

func newCommandLine(ctx context.Context, p Process) (*commandLine, error) {
	l := &commandLine{}
	flags := newSettingFlags()
	l.tree.Plugins = kong.Plugins{flags.target()}
	var err error
	l.parser, err = kong.New(&l.tree,
		kong.Name("kontor"),
		kong.Description("Run the Kontor banking platform. Without a command, start the server."),
		kong.Writers(p.Stdout, p.Stderr),
		kong.Exit(func(int) { l.printed = true }),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, WrapUpperBound: 110}),
		kong.Help(printHelp),
		kong.Bind(p),
		kong.BindTo(ctx, (*context.Context)(nil)),
		// Settings are loaded only for commands that need them: "kontor version" works with invalid settings.
		kong.BindSingletonProvider(func() (*settings.Result, error) {
			return settings.Load(settings.Input{Flags: flags.given(), Environ: p.Environ, File: l.tree.Config})
		}),
	)
	return l, err
}

// warn prints the warnings about the settings.
func (p Process) warn(r *settings.Result) {
	for _, w := range r.Warnings {
		fmt.Fprintln(p.Stderr, "kontor: warning: "+w)
	}
}
