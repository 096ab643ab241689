// Package commands is the command line of Kontor: its commands, their output and their exit codes.
//
// Each command is a struct with its flags and arguments, whose method Run does the work. The package cobra parses the command
// line, prints the help and completes words in shells. Every setting is a flag of every command; the flags are generated from
// the registry in server/settings. A command that fails prints one line to standard error and exits with 1.
package commands

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

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

// Run executes the command that the arguments name and returns the exit code of the process. When the context ends, a
// server shuts down gracefully and every other command is cancelled.
func Run(ctx context.Context, p Process) int {
	l := &commandLine{process: p}
	root := l.root()
	args, err := l.joined(p.Args)
	if isVersion(args) {
		args = []string{"version"}
	}
	if err == nil {
		root.SetArgs(args)
		err = root.ExecuteContext(ctx)
	}
	if err != nil {
		return p.fail(err)
	}
	return 0
}

// isVersion reports whether arguments have the flag --version, which every command has.
func isVersion(args []string) bool {
	version, end := slices.Index(args, "--version"), slices.Index(args, "--")
	return version >= 0 && (end < 0 || version < end)
}

// fail prints the error as one line and returns the exit code.
func (p Process) fail(err error) int {
	fmt.Fprintln(p.Stderr, "kontor: "+explain(err))
	return 1
}

// commandLine is what all commands share. It is used once.
type commandLine struct {
	process  Process
	config   string
	settings map[string]*settingFlag
}

// runner is a command that needs the settings.
type runner interface {
	Run(ctx context.Context, p Process, r *settings.Result) error
}

// run returns the function that loads the settings and runs a command. Commands without it work with invalid settings too.
func (l *commandLine) run(c runner) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, _ []string) error {
		r, err := settings.Load(settings.Input{Flags: l.given(), Environ: l.process.Environ, File: l.config})
		if err != nil {
			return err
		}
		return c.Run(cmd.Context(), l.process, r)
	}
}

// root returns the program with its commands. Without the name of one, it starts the server.
func (l *commandLine) root() *cobra.Command {
	serve, serveFlags := l.serve()
	root := &cobra.Command{
		Use: "kontor", Short: "Run the Kontor banking platform. Without a command, start the server.",
		Args: commandName, RunE: serve.RunE, SilenceErrors: true, SilenceUsage: true,
	}
	root.SetOut(l.process.Stdout)
	root.SetErr(l.process.Stderr)
	root.SetFlagErrorFunc(flagError)
	root.SetUsageFunc(usage)
	help := root.HelpFunc()
	root.SetHelpFunc(func(c *cobra.Command, args []string) { l.printHelp(c, func() { help(c, args) }) })
	serveFlags(root.Flags())
	all := root.PersistentFlags()
	all.BoolP("help", "h", false, "Show the help of the command.")
	all.Bool("version", false, "Print the version.")
	all.StringVar(&l.config, "config", "", "YAML `file` with settings (environment: KONTOR_CONFIG).")
	l.addSettings(root)
	root.AddCommand(serve, l.ready(), l.users(), l.services(), l.apiKeys(), l.explainList(), l.open(), l.listen(), l.logs(), l.imports(), l.qrbill(), l.backup(), l.restore(), l.copy(), l.key(), l.clock(), l.reset(), l.seed(), l.trigger(), l.check(),
		l.privacy(), l.screening(), l.audit(), l.showSettings(), l.licences(), l.version())
	complete(root)
	root.InitDefaultCompletionCmd()
	if completion, _, err := root.Find([]string{"completion"}); err == nil {
		completion.Args, completion.RunE = commandName, nothing // an unknown shell is an error
	}
	return root
}

// complete fills in what all commands below c have in common.
func complete(c *cobra.Command) {
	c.Long = strings.TrimSpace(c.Short + "\n\n" + c.Long)
	if c.Example != "" {
		c.Example = "  " + strings.ReplaceAll(c.Example, "\n", "\n  ")
	}
	for _, child := range c.Commands() {
		complete(child)
	}
}

// printHelp calls show so that it lists the flags of the settings for the commands serve and settings only.
func (l *commandLine) printHelp(c *cobra.Command, show func()) {
	listed := slices.Contains([]string{"kontor serve", "kontor settings"}, c.CommandPath())
	for name := range l.settings {
		c.Root().PersistentFlags().Lookup(name).Hidden = !listed
	}
	show()
	if !listed {
		fmt.Fprintln(l.process.Stdout, "\nEvery setting is a flag of every command: see \"kontor settings --help\".")
	}
}

// group returns a command that only groups others.
func group(name, short string, children ...*cobra.Command) *cobra.Command {
	c := &cobra.Command{Use: name + " <command>", Short: short, Args: commandName, RunE: nothing}
	c.AddCommand(children...)
	return c
}

// nothing is what a group does: commandName has rejected it.
func nothing(*cobra.Command, []string) error { return nil }

// warn prints the warnings about the settings.
func (p Process) warn(r *settings.Result) {
	for _, w := range r.Warnings {
		fmt.Fprintln(p.Stderr, "kontor: warning: "+w)
	}
}
