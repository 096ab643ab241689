package commands

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/pflag"
)

// parse fills the flags of the words, and returns the command that they name and the words that are its arguments. It returns
// the command also with an error.
func (l *commandLine) parse(words []string) (at *command, arguments []string, err error) {
	at = l.root
	for {
		set := at.accepted()
		if words, err = l.joinValues(set, words); err != nil {
			return at, nil, err
		}
		set.SetInterspersed(len(at.children) == 0) // the first argument of a group is the name of a command
		if err := set.Parse(words); err != nil {
			return at, nil, err
		}
		words = set.Args()
		if len(words) == 0 || at.child(words[0]) == nil {
			if !at.isGroup() { // a command with commands below it: the flags after its first argument
				set.SetInterspersed(true)
				err = set.Parse(words)
				words = set.Args()
			}
			return at, words, err
		}
		at, words = at.child(words[0]), words[1:]
		if err := l.misplacedFlag(at); err != nil {
			return at, nil, err
		}
	}
}

// misplacedFlag returns an error if a flag of the default command precedes the name of another one.
func (l *commandLine) misplacedFlag(at *command) (err error) {
	standard := l.root.child(defaultCommand)
	if at.parent != l.root || at == standard {
		return nil
	}
	standard.flags.VisitAll(func(flag *pflag.Flag) {
		if flag.Changed {
			err = fmt.Errorf("--%s is a flag of \"%s\", not of \"%s\"", flag.Name, standard.path(), at.path())
		}
	})
	return err
}

var negativeNumber = regexp.MustCompile(`^-[0-9]`)

// joinValues turns "--flag value" into "--flag=value". It rejects a value that looks like a flag, which may be a forgotten value.
// A switch takes the next word only if it is one of the values of a switch.
func (l *commandLine) joinValues(set *pflag.FlagSet, words []string) ([]string, error) {
	joined := make([]string, 0, len(words))
	for i := 0; i < len(words); i++ {
		word := words[i]
		if word == "--" {
			return append(joined, words[i:]...), nil
		}
		joined = append(joined, word)
		name, long := strings.CutPrefix(word, "--")
		flag := set.Lookup(name)
		if !long || flag == nil || i+1 == len(words) {
			continue
		}
		next := words[i+1]
		switch {
		case l.flags.isSwitch(flag) && slices.Contains(switchValues, next):
		case flag.NoOptDefVal != "":
			continue
		case strings.HasPrefix(next, "-") && next != standardStream && !negativeNumber.MatchString(next):
			return nil, fmt.Errorf("%s needs a value; write %[1]s=%[2]q if %[2]q is the value", word, next)
		}
		joined[len(joined)-1] += "=" + next
		i++
	}
	return joined, nil
}

// fill sets the arguments of the command, and checks that nothing is missing and nothing is left.
func (c *command) fill(words []string) error {
	if c.isGroup() {
		return c.missingCommand(words)
	}
	for _, a := range c.arguments {
		n := min(1, len(words))
		if a.repeated {
			n = len(words)
		}
		if n == 0 && !a.optional {
			return fmt.Errorf("the argument <%s> is missing", a.Name)
		}
		for _, word := range words[:n] {
			if err := a.Value.Set(word); err != nil {
				return fmt.Errorf("the argument <%s> %w", a.Name, err)
			}
		}
		words = words[n:]
	}
	if len(words) > 0 {
		return fmt.Errorf("unexpected argument %s", words[0])
	}
	return c.missingFlags()
}

func (c *command) missingFlags() error {
	var missing []string
	c.flags.VisitAll(func(flag *pflag.Flag) {
		if _, required := flag.Annotations[requiredNote]; required && !flag.Changed {
			missing = append(missing, "--"+flag.Name)
		}
	})
	if len(missing) == 0 {
		return nil
	}
	return fmt.Errorf("missing: %s", strings.Join(missing, " and "))
}
