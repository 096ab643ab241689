package commands

import (
	"strings"

	"github.com/spf13/pflag"

	"kontor/server/settings"
)

// settingFlags are the flags of the settings. They hold texts only; server/settings parses them and decides which source
// wins. They have neither defaults nor environment variables, because a flag does not record which of them a value came from.
type settingFlags struct {
	set    *pflag.FlagSet
	values map[string]*texts
}

func newSettingFlags() *settingFlags {
	f := &settingFlags{newFlagSet(), map[string]*texts{}}
	for _, s := range settings.All() {
		if s.EnvironmentOnly {
			continue
		}
		value := &texts{}
		f.values[s.Name] = value
		flag := f.set.VarPF(value, s.Name, "", settingHelp(s))
		note(flag, candidatesNote, s.Choices...)
		if s.Switch {
			flag.NoOptDefVal = "true"
		} else {
			note(flag, placeholderNote, strings.ToUpper(strings.ReplaceAll(s.Type, " ", "-")))
		}
	}
	return f
}

func settingHelp(s settings.Setting) string {
	if s.Default == "" {
		return s.Meaning
	}
	return strings.TrimSuffix(s.Meaning, ".") + " (default " + s.Default + ")."
}

// given returns the values of the flags on the command line, by setting.
func (f *settingFlags) given() map[string][]string {
	given := map[string][]string{}
	for name, value := range f.values {
		if len(value.given) > 0 {
			given[name] = value.given
		}
	}
	return given
}

// switchValues are the values of a switch that may be a word of their own: --name is true, and --name false is --name=false.
var switchValues = []string{"true", "false", settings.TriggerAuto}

// isSwitch reports whether the flag belongs to a setting with an optional value.
func (f *settingFlags) isSwitch(flag *pflag.Flag) bool {
	return f.values[flag.Name] != nil && flag.NoOptDefVal != ""
}
