// Package commands is the command line of Kontor: its commands, their output and their exit codes.
//
// A method of commandLine makes each command, with its flags and the function that does the work. The package cobra parses the command
// line, prints the help and completes words in shells. Every setting is a flag of every command; the flags are generated from
// the registry in server/settings. A command that fails prints one line to standard error and exits with 1.
package commands

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"kontor/licences"
	"kontor/locales"
	"kontor/modules/app"
	"kontor/server/apierr"
	"kontor/server/settings"
	"kontor/store"
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

// run returns the function that loads the settings and calls f. Commands without it work with invalid settings too.
func (l *commandLine) run(f func(ctx context.Context, p Process, r *settings.Result) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, _ []string) error {
		r, err := settings.Load(settings.Input{Flags: l.given(), Environ: l.process.Environ, File: l.config})
		if err != nil {
			return err
		}
		return f(cmd.Context(), l.process, r)
	}
}

// administer returns the function that calls work with the rights of an administrator, see the function of this name.
func (l *commandLine) administer(work func(context.Context, *app.Modules) error) func(*cobra.Command, []string) error {
	return l.run(func(ctx context.Context, p Process, r *settings.Result) error { return administer(ctx, p, r, work) })
}

// say prints a line.
func (p Process) say(format string, args ...any) error {
	_, err := fmt.Fprintf(p.Stdout, format+"\n", args...)
	return err
}

// printJSON prints a value.
func (p Process) printJSON(value any) error {
	out := json.NewEncoder(p.Stdout)
	out.SetEscapeHTML(false)
	out.SetIndent("", "  ")
	return out.Encode(value)
}

// open opens a file for reading; "-" is standard input.
func (p Process) open(name string) (io.ReadCloser, error) {
	if name == standardStream {
		return io.NopCloser(p.Stdin), nil
	}
	return os.Open(name)
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

// usageWidth is the longest line of the help, in characters.
const usageWidth = 100

// usage prints how a command is used. With a template of cobra, the program would be 10 MB larger: the linker keeps all methods that a
// template could call.
func usage(c *cobra.Command) error {
	var text strings.Builder
	fmt.Fprintf(&text, "Usage:\n  %s\n", c.UseLine())
	if c.HasExample() {
		fmt.Fprintf(&text, "\nExamples:\n%s\n", c.Example)
	}
	if c.HasAvailableSubCommands() {
		text.WriteString("\nCommands:\n")
		for _, child := range c.Commands() {
			if child.IsAvailableCommand() {
				fmt.Fprintf(&text, "  %-*s %s\n", child.NamePadding(), child.Name(), child.Short)
			}
		}
	}
	if c.HasAvailableLocalFlags() {
		fmt.Fprintf(&text, "\nFlags:\n%s\n", strings.TrimRight(c.LocalFlags().FlagUsagesWrapped(usageWidth), " \n"))
	}
	if c.HasAvailableInheritedFlags() {
		fmt.Fprintf(&text, "\nFlags of every command:\n%s\n", strings.TrimRight(c.InheritedFlags().FlagUsagesWrapped(usageWidth), " \n"))
	}
	if c.HasAvailableSubCommands() {
		fmt.Fprintf(&text, "\n\"%s <command> --help\" describes a command.\n", c.CommandPath())
	}
	_, err := fmt.Fprint(c.OutOrStderr(), text.String())
	return err
}

// release is the version, set by the linker: -ldflags "-X kontor/modules/commands.release=1.2.3".
var release string

// version returns the command that prints the version, as the flag --version of every command does.
func (l *commandLine) version() *cobra.Command {
	return &cobra.Command{Use: "version", Short: "Print the version.", Example: "kontor version", Args: arguments(), RunE: func(*cobra.Command, []string) error {
		return l.process.say("kontor %s", Version())
	}}
}

// Version describes this build, for example "1.2.3 (commit 1a2b3c4d5e6f, 2026-01-31T08:15:30Z, go1.26.8 linux/amd64)".
func Version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		info = &debug.BuildInfo{GoVersion: runtime.Version()}
	}
	return describeBuild(release, info)
}

const shownCommit = 12 // digits of a commit's hash

func describeBuild(release string, info *debug.BuildInfo) string {
	var commit, when, changed string
	for _, s := range info.Settings {
		switch {
		case s.Key == "vcs.revision":
			commit = s.Value[:min(len(s.Value), shownCommit)]
		case s.Key == "vcs.time":
			when = s.Value
		case s.Key == "vcs.modified" && s.Value == "true":
			changed = " with changes"
		}
	}
	if release == "" {
		release = "development"
	}
	text := release + " ("
	if commit != "" {
		text += "commit " + commit + changed + ", " + when + ", "
	}
	return text + info.GoVersion + " " + runtime.GOOS + "/" + runtime.GOARCH + ")"
}

func (l *commandLine) licences() *cobra.Command {
	return &cobra.Command{
		Use: "licences", Short: "Print the licence of Kontor, and those of the software in this executable.",
		Example: "kontor licences | less", Args: arguments(), RunE: func(*cobra.Command, []string) error {
			_, err := fmt.Fprintf(l.process.Stdout, "%s\n%s", licences.Kontor, licences.ThirdParty)
			return err
		},
	}
}

// explain renders an error for the operator as one line. An API error gets its English text, the errors of its fields and,
// unlike for clients, its cause.
func explain(err error) string {
	return strings.Join(strings.Fields(explainAPIError(err)), " ")
}

func explainAPIError(err error) string {
	if _, kind := errors.AsType[apierr.Kind](err); !kind {
		if _, is := errors.AsType[*apierr.Error](err); !is {
			return plainError(err)
		}
	}
	f := apierr.Of(err)
	texts, loadErr := locales.Load()
	if loadErr != nil {
		return err.Error()
	}
	var b strings.Builder
	b.WriteString(texts.Text(locales.Default, "error."+f.Code, f.Args))
	for field, text := range f.Fields.All {
		fmt.Fprintf(&b, " %s: %s", field, texts.Text(locales.Default, text.Key, text.Args))
	}
	// A bare kind is its own cause. The text of a kind for duplicates says all that the database reports.
	if f.Cause != nil && f.Cause.Error() != f.Code && !errors.Is(f.Cause, store.ErrDuplicate) {
		fmt.Fprintf(&b, " (%s)", plainError(f.Cause))
	}
	return b.String()
}

// causes are the texts of the operating system and of the libraries that people would have to translate.
var causes = strings.NewReplacer(
	io.ErrUnexpectedEOF.Error(), "the file is incomplete: it ends too early; use a complete copy",
	": "+io.EOF.Error(), ": the input is empty",
)

// plainError returns the text of an error, with sentences in place of raw causes.
func plainError(err error) string {
	text := err.Error()
	if p, ok := errors.AsType[*fs.PathError](err); ok {
		text = strings.Replace(text, p.Error(), describePath(p), 1)
	}
	if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
		text = causes.Replace(text)
	}
	return text
}

func describePath(p *fs.PathError) string {
	switch {
	case errors.Is(p, fs.ErrExist):
		return p.Path + " exists already; name a new file"
	case errors.Is(p, fs.ErrNotExist) && p.Op == "open":
		return p.Path + " does not exist, or its directory does not; check the path"
	case errors.Is(p, fs.ErrPermission):
		return "this user may not use " + p.Path + "; check its owner and mode"
	case errors.Is(p, syscall.EISDIR):
		return p.Path + " is a directory; name a file"
	}
	return p.Error()
}
