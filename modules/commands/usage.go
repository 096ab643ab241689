package commands

import (
	"errors"
	"fmt"
	"regexp"

	"kontor/server/settings"
)

var negativeNumber = regexp.MustCompile(`^-[0-9]`)

// joinNegativeNumbers turns "--flag -5" into "--flag=-5". The parser would take the number for a flag.
func (l *commandLine) joinNegativeNumbers(args []string) []string {
	var joined []string
	for i, word := range args {
		if negativeNumber.MatchString(word) {
			if _, pending, _ := walk(l.parser.Model.Node, args[:i]); pending != nil {
				joined[len(joined)-1] += "=" + word
				continue
			}
		}
		joined = append(joined, word)
	}
	return joined
}

// usage returns the error of a wrong command line as a sentence for people.
func (l *commandLine) usage(args []string, err error) error {
	root := l.parser.Model.Node
	at, _, arguments := walk(root, args)
	if at != root || len(arguments) == 0 {
		return errors.New(usageSentence(at.FullPath(), err.Error()))
	}
	// The parser mistakes an unknown command for an argument of the default command.
	var known []string
	for _, child := range root.Children {
		known = append(known, child.Name)
	}
	return fmt.Errorf("unknown command %q%s", arguments[0], settings.DidYouMean(arguments[0], known))
}

// usageSentences translate the parser's messages.
var usageSentences = []struct {
	message  *regexp.Regexp
	sentence string
}{
	{regexp.MustCompile(`^expected "(<.*)"$`), "the argument $1 is missing"},
	{regexp.MustCompile(`^expected one of (.*)$`), "a command is missing: one of $1"},
	{regexp.MustCompile(`^(--[^:]+): missing value, expecting ".*"$`), "$1 needs a value"},
	{regexp.MustCompile(`^(--[^:]+): expected a valid [0-9]+ bit u?int but got (.*)$`), "$1 must be a whole number, not $2"},
	{regexp.MustCompile(`^(--[^:]+): expected \S+ value but got "([^"]*)".*$`), `$1 needs a value; write $1="$2" if "$2" is the value`},
	{regexp.MustCompile(`^(--[^:]+): bool value must be .* but got (.*)$`), "$1 must be true or false, not $2"},
	{regexp.MustCompile(`^<(.*)> must be one of (.*) but got (.*)$`), "the argument <$1> must be one of $2, not $3"},
}

func usageSentence(command, message string) string {
	for _, s := range usageSentences {
		if s.message.MatchString(message) {
			return s.message.ReplaceAllString(message, s.sentence) + `; see "` + command + ` --help"`
		}
	}
	return message
}
