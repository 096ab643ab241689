package commands

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"kontor/server/settings"
	"kontor/store/inspect"
	"kontor/store/transfer"
)

// settingFlag is the value of the flag of a setting. It keeps the texts as they are: package settings parses them and decides which
// source wins. It implements pflag.Value.
type settingFlag struct {
	settings.Setting
	given []string
}

// String implements pflag.Value. A flag has no default: it does not record whether its value is one.
func (f *settingFlag) String() string { return strings.Join(f.given, ",") }

// Type implements pflag.Value. The help shows it.
func (f *settingFlag) Type() string {
	if f.Switch {
		return "bool"
	}
	return strings.ToUpper(strings.ReplaceAll(f.Setting.Type, " ", "-"))
}

// Set implements pflag.Value.
func (f *settingFlag) Set(given string) error {
	f.given = append(f.given, given)
	return nil
}

// addSettings adds a flag for each setting to all commands.
func (l *commandLine) addSettings(root *cobra.Command) {
	l.settings = map[string]*settingFlag{}
	for _, s := range settings.All() {
		if s.EnvironmentOnly {
			continue
		}
		usage := s.Meaning
		if s.Default != "" {
			usage = strings.TrimSuffix(usage, ".") + " (default " + s.Default + ")."
		}
		value := &settingFlag{Setting: s}
		l.settings[s.Name] = value
		flag := root.PersistentFlags().VarPF(value, s.Name, "", usage)
		if s.Switch {
			flag.NoOptDefVal = "true"
		}
		if len(s.Choices) > 0 {
			suggest(root, s.Name, s.Choices...)
		}
	}
}

// given returns the values of the flags on the command line, by setting.
func (l *commandLine) given() map[string][]string {
	given := map[string][]string{}
	for name, f := range l.settings {
		if len(f.given) > 0 {
			given[name] = f.given
		}
	}
	return given
}

// switchValues are the values of a switch that may be a word of their own: --name is true, and --name false is --name=false.
var switchValues = []string{"true", "false", settings.TriggerAuto}

// joined returns the words of a command line, with the value of a switch joined to it. It rejects a setting without a value, for which
// the parser would take the next flag.
func (l *commandLine) joined(words []string) ([]string, error) {
	if len(words) > 0 && (words[0] == cobra.ShellCompRequestCmd || words[0] == cobra.ShellCompNoDescRequestCmd) {
		return words, nil // the last word is not complete
	}
	all := make([]string, 0, len(words)) // never nil: the parser would take the arguments of the process
	for i := 0; i < len(words); i++ {
		if words[i] == "--" {
			return append(all, words[i:]...), nil
		}
		all = append(all, words[i])
		f := l.settings[strings.TrimPrefix(words[i], "--")]
		if f == nil || i+1 == len(words) {
			continue
		}
		next := words[i+1]
		switch {
		case f.Switch && slices.Contains(switchValues, next):
			all[len(all)-1] += "=" + next
			i++
		case !f.Switch && strings.HasPrefix(next, "--"):
			return nil, fmt.Errorf("%s needs a value; write %[1]s=%[2]q if %[2]q is the value", words[i], next)
		}
	}
	return all, nil
}

// fileName is the value of a flag that names a file. It rejects an empty name, such as the value of a variable that is not set.
// It implements pflag.Value.
type fileName string

// String implements pflag.Value.
func (n *fileName) String() string { return string(*n) }

// Type implements pflag.Value. The help shows it.
func (n *fileName) Type() string { return "file" }

// Set implements pflag.Value.
func (n *fileName) Set(given string) error {
	if *n = fileName(given); given == "" {
		return errors.New("empty")
	}
	return nil
}

// required makes a command fail without the flags.
func required(c *cobra.Command, flags ...string) {
	c.PreRunE = func(c *cobra.Command, _ []string) error {
		var missing []string
		for _, name := range flags {
			if !c.Flag(name).Changed {
				missing = append(missing, "--"+name)
			}
		}
		if missing != nil {
			return usageError(c, fmt.Errorf("missing: %s", strings.Join(missing, " and ")))
		}
		return nil
	}
}

// suggest makes shells complete the values of a flag.
func suggest(c *cobra.Command, flag string, values ...string) {
	_, usage := pflag.UnquoteUsage(c.Flag(flag))
	if err := c.RegisterFlagCompletionFunc(flag, suggestion(usage, values)); err != nil {
		panic(err) // the flag does not exist, or was registered before
	}
}

// suggestion completes values, each with the same description.
func suggestion(meaning string, values []string) cobra.CompletionFunc {
	return func(_ *cobra.Command, _ []string, begun string) (found []cobra.Completion, _ cobra.ShellCompDirective) {
		for _, v := range values {
			if strings.HasPrefix(v, begun) {
				found = append(found, cobra.CompletionWithDesc(v, meaning))
			}
		}
		return found, cobra.ShellCompDirectiveNoFileComp
	}
}

// arguments returns the function that stores the arguments of a command: each *string takes one, a *[]string takes all others. The
// command's Use names them; the name of an optional one begins with a bracket.
func arguments(targets ...any) cobra.PositionalArgs {
	return func(c *cobra.Command, words []string) error {
		for i, target := range targets {
			name := strings.Fields(c.Use)[i+1]
			if len(words) == 0 {
				if strings.HasPrefix(name, "[") {
					continue
				}
				return usageError(c, fmt.Errorf("the argument %s is missing", strings.TrimSuffix(name, "...")))
			}
			switch target := target.(type) {
			case *string:
				*target, words = words[0], words[1:]
			case *[]string:
				*target, words = words, nil
			}
		}
		if len(words) > 0 {
			return usageError(c, fmt.Errorf("unexpected argument %s", words[0]))
		}
		return nil
	}
}

// commandName rejects a group without the name of one of its commands. The program itself may be called without one.
func commandName(c *cobra.Command, words []string) error {
	var names, quoted []string
	for _, child := range c.Commands() {
		if child.IsAvailableCommand() {
			names = append(names, child.Name())
			quoted = append(quoted, strconv.Quote(child.Name()))
		}
	}
	switch {
	case len(words) > 0:
		return usageError(c, fmt.Errorf("unknown command %q%s", words[0], settings.DidYouMean(words[0], names)))
	case c.HasParent():
		return usageError(c, fmt.Errorf("a command is missing: one of %s", strings.Join(quoted, ", ")))
	}
	return nil
}

// usageError returns the error of a wrong command line, with where to look.
func usageError(c *cobra.Command, err error) error {
	return fmt.Errorf("%w; see \"%s --help\"", err, c.CommandPath())
}

// addressFlags are the names that other programs use for the address on which they listen.
var addressFlags = []string{"--port", "--listen", "--address", "--addr", "--bind", "--host", "--http", "-p", "-l"}

// flagError returns the error of a flag as a sentence for people.
func flagError(c *cobra.Command, err error) error {
	if invalid, ok := errors.AsType[*pflag.InvalidValueError](err); ok {
		kind := "a whole number"
		switch invalid.GetFlag().Value.Type() {
		case "bool":
			kind = "true or false"
		case "file":
			kind = "the name of a file"
		}
		err = fmt.Errorf("--%s must be %s, not %q", invalid.GetFlag().Name, kind, invalid.GetValue())
	}
	if missing, ok := errors.AsType[*pflag.ValueRequiredError](err); ok {
		err = fmt.Errorf("--%s needs a value", missing.GetFlag().Name)
	}
	if unknown, ok := errors.AsType[*pflag.NotExistError](err); ok {
		name := "-" + unknown.GetSpecifiedShortnames()
		if name == "-" {
			name += "-" + unknown.GetSpecifiedName()
		}
		var known []string
		c.Flags().VisitAll(func(flag *pflag.Flag) { known = append(known, "--"+flag.Name) })
		hint := settings.DidYouMean(name, known)
		if slices.Contains(addressFlags, name) {
			hint = ` (did you mean "--server.listen", such as --server.listen=127.0.0.1:8081?)`
		}
		err = fmt.Errorf("unknown flag %s%s", name, hint)
	}
	return usageError(c, err)
}

// isShared reports whether the settings name a PostgreSQL database.
func isShared(r *settings.Result) bool { return r.Settings.Data.URL != "" }

// placeName names the data for messages: the data directory, or the database without its password.
func placeName(r *settings.Result) string {
	if isShared(r) {
		return settings.DatabaseName(string(r.Settings.Data.URL))
	}
	return r.Settings.Data.Dir
}

// databaseOf returns where a command reads without opening the database.
func databaseOf(r *settings.Result) inspect.Source {
	return inspect.Source{Dir: r.Settings.Data.Dir, URL: string(r.Settings.Data.URL), SecretKey: string(r.Settings.Secrets.SecretKey),
		PreviousKey: string(r.Settings.Secrets.PreviousKey)}
}

// storeDir returns the directory of the store. With a database server it is only used if it was set, for what the node has seen of
// the database.
func storeDir(r *settings.Result) string {
	if isShared(r) && r.Source("data.dir") == settings.FromDefault {
		return ""
	}
	return r.Settings.Data.Dir
}

// cacheDir returns the directory for what can be built again; "" for none. A node need not have a data directory.
func cacheDir(r *settings.Result) string {
	dir := storeDir(r)
	if dir == "" {
		return engineCache()
	}
	return filepath.Join(dir, "cache")
}

// engineCache returns the directory of this user for the compiled PDF engine, or "" for a user who cannot have one.
func engineCache() string {
	dir, err := os.UserCacheDir()
	if err != nil {
		return ""
	}
	dir = filepath.Join(dir, "kontor", "pdf-engine")
	if os.MkdirAll(dir, 0o700) != nil { // such as on a system that can only be read; a temporary directory serves until the stop
		return ""
	}
	return dir
}

// nodeName returns the name of this process in the list of nodes. That of a command differs from the node of the same machine.
func nodeName(r *settings.Result, command bool) string {
	name := r.Settings.Cluster.Node
	if name == "" {
		name, _ = os.Hostname() // without a name the store uses the id of the process
	}
	if command && name != "" {
		name += "-command"
	}
	return name
}

// requireData rejects a database that does not exist. Opening it would create a new one, so that a mistyped name would look like
// success.
func requireData(ctx context.Context, r *settings.Result) error {
	if isShared(r) {
		return requireDatabase(ctx, r)
	}
	dir := r.Settings.Data.Dir
	if entries, err := os.ReadDir(dir); err != nil || len(entries) == 0 {
		return fmt.Errorf("there is no data in %s; start the server once, or name its directory with --data.dir", dir)
	}
	return nil
}

// readable checks the settings of a command that reads without opening the database.
func readable(r *settings.Result) (inspect.Source, error) {
	return databaseOf(r), checkDatabase(&r.Settings)
}

// requireDatabase rejects a PostgreSQL database without a schema.
func requireDatabase(ctx context.Context, r *settings.Result) error {
	if err := checkDatabase(&r.Settings); err != nil {
		return err
	}
	empty, err := transfer.Empty(ctx, transfer.Place{URL: string(r.Settings.Data.URL), Name: placeName(r)})
	if err == nil && empty {
		err = fmt.Errorf("there is no data in %s; start the server once, or name its database in KONTOR_DATA_URL", placeName(r))
	}
	return err
}

// newKeyCommand prints a new master key.
const newKeyCommand = "openssl rand -hex 32"

// checkDatabase checks the settings that belong to data.url, and the files that it names, before anything is created.
func checkDatabase(s *settings.Settings) error {
	if s.Data.URL == "" {
		return nil
	}
	if s.Secrets.SecretKey == "" {
		return errors.New("KONTOR_SECRET_KEY must be set with data.url, to the same master key on every node; make one for a new database with: " + newKeyCommand)
	}
	if _, err := pgconn.ParseConfig(string(s.Data.URL)); err != nil {
		if cause := errors.Unwrap(err); cause != nil { // err itself shows the address
			err = cause
		}
		return fmt.Errorf("data.url cannot be used: %w", err)
	}
	return nil
}

// notShared returns the error of a command that only a data directory has.
func notShared(r *settings.Result, instead string) error {
	if !isShared(r) {
		return nil
	}
	return errors.New("with data.url, " + instead)
}

const (
	postgresBacksUp = "PostgreSQL makes backups and restores them: use pg_dump or WAL archiving, see \"Backup\" in docs/cluster.md"
	keyIsGiven      = "the master key is in KONTOR_SECRET_KEY; keep a copy of that value apart from the backups"
)
