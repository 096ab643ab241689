package commands

import (
	"context"
	"reflect"
	"strconv"
	"strings"
	"unicode"

	"github.com/spf13/pflag"

	"kontor/modules/rbac"
	"kontor/server/settings"
)

// command is a command, or a group of commands.
type command struct {
	name, help string
	parent     *command
	children   []*command
	flags      *pflag.FlagSet // its own, in the order of the fields
	arguments  []argument
	target     any // pointer to its struct
}

// argument is a positional argument. It has the name, the help and the value of a flag.
type argument struct {
	*pflag.Flag
	optional, repeated bool
}

// runner is a command that needs the settings.
type runner interface {
	Run(ctx context.Context, p Process, r *settings.Result) error
}

// offlineRunner is a command that works with invalid settings too.
type offlineRunner interface{ Run(p Process) error }

// Annotations of a flag. The package pflag has no fields for these facts.
const (
	placeholderNote = "placeholder" // stands for the value in the help
	candidatesNote  = "candidates"  // values that the shell completes
	requiredNote    = "required"
)

// newCommand returns the command whose struct is target. The tags of its fields are:
//
//	cmd          a command of the group; its struct is the field
//	arg          a positional argument; optional allows to leave it out, and a slice allows to repeat it
//	help         description of the command, the flag or the argument
//	short        letter of the flag, of type bool
//	name         name, if it is not the field's name in lower case with hyphens
//	default      value if none is given
//	enum         the only values, separated by commas
//	type         "path" makes a file name absolute
//	placeholder  stands for the value in the help
//	required     the flag must be given
//	complete     "roles" completes the names of roles
func newCommand(name, help string, target any) *command {
	c := &command{name: name, help: help, target: target, flags: newFlagSet()}
	fields := reflect.ValueOf(target).Elem()
	for i := range fields.NumField() {
		field, value := fields.Type().Field(i), fields.Field(i).Addr().Interface()
		name, help := fieldName(field), field.Tag.Get("help")
		switch {
		case hasTag(field, "cmd"):
			child := newCommand(name, help, value)
			child.parent = c
			c.children = append(c.children, child)
		case hasTag(field, "arg"):
			_, repeated := value.(*[]string)
			set := newFlagSet() // a set for each argument, because the package makes flags in sets only
			addFlag(set, value, name, field)
			c.arguments = append(c.arguments, argument{set.Lookup(name), hasTag(field, "optional"), repeated})
		case help != "":
			addFlag(c.flags, value, name, field)
		}
	}
	return c
}

func newFlagSet() *pflag.FlagSet {
	set := pflag.NewFlagSet("", pflag.ContinueOnError)
	set.SortFlags = false
	return set
}

func hasTag(field reflect.StructField, key string) bool {
	_, ok := field.Tag.Lookup(key)
	return ok
}

// fieldName returns the name of a command, a flag or an argument: WithKey becomes with-key.
func fieldName(field reflect.StructField) string {
	if name := field.Tag.Get("name"); name != "" {
		return name
	}
	var name strings.Builder
	lower := false
	for _, r := range field.Name {
		if unicode.IsUpper(r) && lower {
			name.WriteByte('-')
		}
		lower = unicode.IsLower(r)
		name.WriteRune(unicode.ToLower(r))
	}
	return name.String()
}

// addFlag adds a flag that fills the field to which the pointer target points.
func addFlag(set *pflag.FlagSet, target any, name string, field reflect.StructField) {
	usage, initial := field.Tag.Get("help"), field.Tag.Get("default")
	number, _ := strconv.ParseInt(initial, 10, 64) // 0 without a default
	switch target := target.(type) {
	case *bool:
		set.BoolVarP(target, name, field.Tag.Get("short"), false, usage)
	case *int:
		set.IntVar(target, name, int(number), usage)
	case *int64:
		set.Int64Var(target, name, number, usage)
	case *[]string:
		var all []string
		if initial != "" {
			all = []string{initial}
		}
		if hasTag(field, "arg") {
			set.StringArrayVar(target, name, all, usage)
		} else {
			set.StringSliceVar(target, name, all, usage)
		}
	case *string:
		*target = initial
		set.Var(&text{target, field.Tag.Get("enum"), field.Tag.Get("type") == "path"}, name, usage)
	default:
		panic("commands: " + field.Name + " has a type that no flag can have")
	}
	flag := set.Lookup(name)
	note(flag, placeholderNote, field.Tag.Get("placeholder"))
	if choices := field.Tag.Get("enum"); choices != "" {
		note(flag, candidatesNote, strings.Split(choices, ",")...)
	}
	if field.Tag.Get("complete") == "roles" {
		note(flag, candidatesNote, rbac.BuiltInNames()...)
	}
	if hasTag(field, "required") {
		note(flag, requiredNote)
	}
}

func note(flag *pflag.Flag, key string, values ...string) {
	if flag.Annotations == nil {
		flag.Annotations = map[string][]string{}
	}
	flag.Annotations[key] = values
}

// path returns the words that run the command, such as "kontor key export".
func (c *command) path() string {
	if c.parent == nil {
		return c.name
	}
	return c.parent.path() + " " + c.name
}

// isGroup reports whether the command does nothing by itself.
func (c *command) isGroup() bool { return len(c.children) > 0 && len(c.arguments) == 0 }

// child returns the command of the group with this name, or nil.
func (c *command) child(name string) *command {
	for _, child := range c.children {
		if child.name == name {
			return child
		}
	}
	return nil
}

// childNames returns the names of the commands of the group.
func (c *command) childNames() []string {
	names := make([]string, 0, len(c.children))
	for _, child := range c.children {
		names = append(names, child.name)
	}
	return names
}

// accepted returns the flags that may follow the command: its own, those of its ancestors and, for the program itself, those of
// its default command.
func (c *command) accepted() *pflag.FlagSet {
	set := newFlagSet()
	if c.parent == nil {
		set.AddFlagSet(c.child(defaultCommand).flags)
	}
	for ; c != nil; c = c.parent {
		set.AddFlagSet(c.flags)
	}
	return set
}
