package commands

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

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
