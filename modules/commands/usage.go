package commands

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"kontor/server/settings"
)

// usageError returns the error of a wrong command line as a sentence for people.
func (c *command) usageError(err error) error {
	if invalid, ok := errors.AsType[*pflag.InvalidValueError](err); ok {
		err = fmt.Errorf("--%s %s", invalid.GetFlag().Name, describeInvalid(invalid))
	}
	if missing, ok := errors.AsType[*pflag.ValueRequiredError](err); ok {
		err = fmt.Errorf("--%s needs a value", missing.GetFlag().Name)
	}
	if unknown, ok := errors.AsType[*pflag.NotExistError](err); ok {
		err = c.unknownFlag(unknown)
	}
	return fmt.Errorf("%w; see \"%s --help\"", err, c.path())
}

func describeInvalid(err *pflag.InvalidValueError) string {
	switch err.GetFlag().Value.Type() {
	case "bool":
		return "must be true or false, not " + strconv.Quote(err.GetValue())
	case "int", "int64":
		return "must be a whole number, not " + strconv.Quote(err.GetValue())
	}
	return errors.Unwrap(err).Error()
}

func (c *command) unknownFlag(err *pflag.NotExistError) error {
	if letters := err.GetSpecifiedShortnames(); letters != "" {
		return fmt.Errorf("unknown flag -%s", letters)
	}
	var known []string
	c.accepted().VisitAll(func(flag *pflag.Flag) { known = append(known, "--"+flag.Name) })
	name := "--" + err.GetSpecifiedName()
	return fmt.Errorf("unknown flag %s%s", name, settings.DidYouMean(name, known))
}

// missingCommand returns the error of a group without the name of one of its commands.
func (c *command) missingCommand(words []string) error {
	names := c.childNames()
	if len(words) > 0 {
		return fmt.Errorf("unknown command %q%s", words[0], settings.DidYouMean(words[0], names))
	}
	for i, name := range names {
		names[i] = strconv.Quote(name)
	}
	return fmt.Errorf("a command is missing: one of %s", strings.Join(names, ", "))
}
