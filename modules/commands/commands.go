// Package commands is the command line of Kontor: what can be typed, what it prints and how it ends.
//
// Each command is a struct whose fields are its flags and arguments and whose Run does the work. Every setting is a
// flag of every command; the flags are made from the registry in server/settings. A command that fails prints one line
// to standard error and ends with 1.
package commands

import (
	"context"
	"fmt"
	"io"

	"github.com/alecthomas/kong"

	"kontor/server/settings"
)

// Process is what a command has of the outside world, so that a test can run it without a process of its own.
type Process struct {
	Args    []string // without the name of the program
	Environ []string
	Stdin   io.Reader
	Stdout  io.Writer
	Stderr  io.Writer
}

// tree is everything that can be typed.
type tree struct {
	Config string `help:"YAML file with settings (environment: KONTOR_CONFIG)." placeholder:"FILE"`

	kong.Plugins // one flag for each setting

	Serve      serveCommand      `cmd:"" default:"withargs" help:"Start Kontor; this is what happens without a command."`
	User       userCommand       `cmd:"" help:"Make users, set passwords and roles."`
	APIKey     apiKeyCommand     `cmd:"" name:"apikey" help:"Make, list and revoke API keys."`
	QRBill     qrbillCommand     `cmd:"" name:"qrbill" help:"Read Swiss QR-bills from files, JSON out."`
	Backup     backupCommand     `cmd:"" help:"Write everything to one file."`
	Restore    restoreCommand    `cmd:"" help:"Bring a backup back into an empty data directory."`
	Check      checkCommand      `cmd:"" help:"Check the database and the chain of the audit trail."`
	Audit      auditCommand      `cmd:"" help:"Export the audit trail, and verify an export."`
	Settings   settingsCommand   `cmd:"" help:"Show every setting: its value, where that comes from and what it means."`
	Completion completionCommand `cmd:"" help:"Print a script that completes commands and flags in a shell."`
	Version    versionCommand    `cmd:"" help:"Print the version."`
}

// Run executes the command that the arguments name and returns the exit code of the process. When the context ends, a
// server stops in order and other commands break off.
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
	parsed, err := line.parser.Parse(args)
	if line.done { // the help has been printed; that it was asked for in an incomplete command is no error
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
	tree   tree
	parser *kong.Kong
	done   bool // the parser has printed the help and would have ended the process
}

func newCommandLine(ctx context.Context, p Process) (*commandLine, error) {
	l := &commandLine{}
	flags := newSettingFlags()
	l.tree.Plugins = kong.Plugins{flags.target()}
	var err error
	l.parser, err = kong.New(&l.tree,
		kong.Name("kontor"),
		kong.Description("Kontor, a banking platform in one executable. Without a command it serves."),
		kong.Writers(p.Stdout, p.Stderr),
		kong.Exit(func(int) { l.done = true }),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, WrapUpperBound: 110}),
		kong.Help(printHelp),
		kong.Bind(p),
		kong.BindTo(ctx, (*context.Context)(nil)),
		// Only a command that asks for the settings reads them: "kontor version" works whatever is set.
		kong.BindSingletonProvider(func() (*settings.Result, error) {
			return settings.Load(settings.Input{Flags: flags.given(), Environ: p.Environ, File: l.tree.Config})
		}),
	)
	return l, err
}

// usage turns the parser's error about a command that does not exist into one that says so: the parser takes the word
// for an argument of the default command.
func (l *commandLine) usage(args []string, err error) error {
	root := l.parser.Model.Node
	at, _, arguments := walk(root, args)
	if at != root || len(arguments) == 0 {
		return err
	}
	var known []string
	for _, child := range root.Children {
		known = append(known, child.Name)
	}
	return fmt.Errorf("unknown command %q%s", arguments[0], settings.DidYouMean(arguments[0], known))
}

// warn prints what the settings complain about.
func (p Process) warn(r *settings.Result) {
	for _, w := range r.Warnings {
		fmt.Fprintln(p.Stderr, "kontor: warning: "+w)
	}
}
