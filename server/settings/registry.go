package settings

import (
	"slices"
	"strings"
)

// Setting is one row of the registry.
type Setting struct {
	Name    string // dotted, as in the file; for EnvironmentOnly the variable's name
	Env     string // the environment variable
	Type    string // kind of its values, for the help text
	Default string // in the form of the file
	Meaning string // one line
	Choices []string

	List            bool // has several values
	Switch          bool // true or false
	EnvironmentOnly bool // not available as a flag or in the file

	at    func(*Settings) any
	set   func(*Settings, string) error
	show  func(*Settings) string
	value func(*Settings) any
}

// All returns the rows of the registry in their order.
func All() []Setting { return append([]Setting(nil), registry...) }

const envPrefix = "KONTOR_"

// ConfigEnv is the environment variable with the path of the settings file, used without the flag --config.
const ConfigEnv = envPrefix + "CONFIG"

// row declares one setting: its name, kind, default, meaning and the field of its value.
func row[T any](name string, k kind[T], def, meaning string, at func(*Settings) *T) Setting {
	return Setting{
		Name:    name,
		Env:     envPrefix + strings.ToUpper(strings.ReplaceAll(name, ".", "_")),
		Type:    k.name,
		Default: def,
		Meaning: meaning,
		Choices: k.choices,
		List:    k.list,
		Switch:  k.isSwitch,
		at:      func(s *Settings) any { return at(s) },
		set: func(s *Settings, raw string) error {
			v, err := k.parse(raw)
			if err == nil {
				*at(s) = v
			}
			return err
		},
		show:  func(s *Settings) string { return k.show(*at(s)) },
		value: func(s *Settings) any { return k.json(*at(s)) },
	}
}

// fromEnvironment declares a value that is available as an environment variable only.
func fromEnvironment[T any](env string, k kind[T], meaning string, at func(*Settings) *T) Setting {
	s := row(env, k, "", meaning, at)
	s.Env = env
	s.EnvironmentOnly = true
	return s
}

// registry holds the rows in the order of the help text and of the table in README.md.
var registry = slices.Concat(serverRows, authRows, limitRows, notificationRows, otherRows, environmentRows)
