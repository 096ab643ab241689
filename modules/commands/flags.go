package commands

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/alecthomas/kong"

	"kontor/server/settings"
)

// settingFlags are the flags that the parser fills, one per setting. They hold texts only; server/settings parses them and
// decides which source wins. The parser gets neither defaults nor environment variables, because it does not record which
// of them a value came from.
type settingFlags struct {
	settings []settings.Setting
	fields   reflect.Value // a struct with one field per setting
}

const settingsGroup = "Settings:"

func newSettingFlags() *settingFlags {
	f := &settingFlags{}
	var fields []reflect.StructField
	for _, s := range settings.All() {
		if s.EnvironmentOnly {
			continue
		}
		kind := reflect.TypeFor[[]string]()
		if s.Switch {
			kind = reflect.TypeFor[switchFlag]()
		}
		f.settings = append(f.settings, s)
		fields = append(fields, reflect.StructField{
			Name: fmt.Sprintf("Setting%d", len(fields)),
			Type: kind,
			Tag:  settingTag(s),
		})
	}
	f.fields = reflect.New(reflect.StructOf(fields))
	return f
}

func settingTag(s settings.Setting) reflect.StructTag {
	help := s.Meaning
	if s.Default != "" {
		help = strings.TrimSuffix(help, ".") + " (default " + s.Default + ")."
	}
	var tag strings.Builder
	for _, item := range []struct{ key, value string }{
		{"name", s.Name},
		{"help", help},
		{"placeholder", strings.ToUpper(strings.ReplaceAll(s.Type, " ", "-"))},
		{"group", settingsGroup},
		{"sep", "none"},
		{"hidden", "true"}, // printHelp shows them for some commands
	} {
		tag.WriteString(item.key + ":" + strconv.Quote(item.value) + " ")
	}
	return reflect.StructTag(tag.String())
}

// target returns the struct that the parser fills.
func (f *settingFlags) target() any { return f.fields.Interface() }

// given returns the values of the flags on the command line, by setting.
func (f *settingFlags) given() map[string][]string {
	given := map[string][]string{}
	for i, s := range f.settings {
		field := f.fields.Elem().Field(i)
		if field.Len() > 0 {
			given[s.Name] = field.Convert(reflect.TypeFor[[]string]()).Interface().([]string)
		}
	}
	return given
}

// switchFlag is a flag with an optional value: --name means true. The value may follow as --name=false, --name false or,
// for settings with a third value, --name auto.
type switchFlag []string

// Decode implements kong.MapperValue.
func (s *switchFlag) Decode(ctx *kong.DecodeContext) error {
	next := ctx.Scan.Peek()
	value := "true"
	if next.Type == kong.FlagValueToken || next.IsValue() && slices.Contains([]string{"true", "false", settings.TriggerAuto}, next.String()) {
		value = ctx.Scan.Pop().String()
	}
	*s = append(*s, value)
	return nil
}

// IsBool implements kong.BoolMapperValue.
func (s *switchFlag) IsBool() bool { return true }

// withExamples is a command whose help ends with examples.
type withExamples interface{ examples() []string }

// printHelp prints the help of the selected command. It lists the flags of the settings only for the commands serve and
// settings, and refers to them otherwise.
func printHelp(options kong.HelpOptions, ctx *kong.Context) error {
	selected := ctx.Selected()
	show := selected != nil && (selected.Name == "serve" || selected.Name == "settings")
	for _, flag := range ctx.Model.Flags {
		if flag.Group != nil && flag.Group.Key == settingsGroup {
			flag.Hidden = !show
		}
	}
	if err := kong.DefaultHelpPrinter(options, ctx); err != nil {
		return err
	}
	var end strings.Builder
	if selected != nil {
		if command, ok := selected.Target.Interface().(withExamples); ok {
			end.WriteString("\nExamples:\n  " + strings.Join(command.examples(), "\n  ") + "\n")
		}
	}
	if !show {
		end.WriteString("\nEvery setting is a flag of every command: see \"kontor settings --help\".\n")
	}
	_, err := fmt.Fprint(ctx.Stdout, end.String())
	return err
}
