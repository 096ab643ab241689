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

// settingFlags are the flags that the parser fills, one for each setting. They carry texts only: what a text means, and
// which source wins, is decided in server/settings alone. In particular the parser gets neither defaults nor environment
// variables from us, since it could not tell afterwards which of them a value came from.
type settingFlags struct {
	settings []settings.Setting
	fields   reflect.Value // a struct with one field for each of settings
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
		{"hidden", "true"}, // printHelp shows them where they are of use
	} {
		tag.WriteString(item.key + ":" + strconv.Quote(item.value) + " ")
	}
	return reflect.StructTag(tag.String())
}

// target is the struct that the parser fills.
func (f *settingFlags) target() any { return f.fields.Interface() }

// given returns the values of the flags that were on the command line.
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

// switchFlag is a flag that may stand alone, which means true, or have a value: --name=false, --name false or, where the
// setting takes it, --name auto.
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

// printHelp shows the flags of the settings only with the commands that are about them, and elsewhere says where they are.
func printHelp(options kong.HelpOptions, ctx *kong.Context) error {
	selected := ctx.Selected()
	show := selected != nil && (selected.Name == "serve" || selected.Name == "settings")
	for _, flag := range ctx.Model.Flags {
		if flag.Group != nil && flag.Group.Key == settingsGroup {
			flag.Hidden = !show
		}
	}
	if err := kong.DefaultHelpPrinter(options, ctx); err != nil || show {
		return err
	}
	_, err := fmt.Fprintln(ctx.Stdout, "\nEvery setting is a flag of every command: see \"kontor settings --help\".")
	return err
}
