package commands

import (
	"fmt"
	"io"
	"os"
	"strings"
	"unicode/utf8"

	"github.com/spf13/pflag"
	"golang.org/x/term"
)

// Widths of the help, in characters.
const (
	defaultWidth = 80
	maxWidth     = 110
	maxLeft      = 35 // of names; the description of a longer one begins on the next line
	gap          = 4  // between the end of the longest name and the descriptions
)

// withHelp is a command whose help has paragraphs after its sentence.
type withHelp interface{ Help() string }

// withExamples is a command whose help ends with examples.
type withExamples interface{ examples() []string }

// row is a name and its description.
type row struct{ name, meaning string }

// printHelp prints the help of a command. It lists the flags of the settings only for the commands serve and settings, and refers
// to them otherwise.
func (l *commandLine) printHelp(out io.Writer, c *command) error {
	h := help{width: terminalWidth(out)}
	h.line("Usage: " + c.path() + c.synopsis())
	h.paragraph(c.help)
	if command, ok := c.target.(withHelp); ok {
		for text := range strings.SplitSeq(command.Help(), "\n\n") {
			h.paragraph(text)
		}
	}
	var arguments, flags, settings []row
	for _, a := range c.arguments {
		arguments = append(arguments, row{a.synopsis(), a.Usage})
	}
	l.root.flags.VisitAll(func(flag *pflag.Flag) {
		if l.flags.values[flag.Name] == nil {
			flags = append(flags, row{flagName(flag), flag.Usage})
		} else {
			settings = append(settings, row{strings.TrimSpace(flagName(flag)), flag.Usage})
		}
	})
	if c != l.root {
		c.flags.VisitAll(func(flag *pflag.Flag) { flags = append(flags, row{flagName(flag), flag.Usage}) })
	}
	h.rows("Arguments", arguments)
	h.rows("Flags", flags)
	h.rows("Commands", c.leaves(nil))
	showSettings := c.parent == l.root && (c.name == defaultCommand || c.name == "settings")
	if showSettings {
		h.rows("Settings", settings)
	}
	if len(c.children) > 0 {
		h.paragraph("Run \"kontor <command> --help\" for more information on a command.")
	}
	if command, ok := c.target.(withExamples); ok {
		h.line("\nExamples:\n  " + strings.Join(command.examples(), "\n  "))
	}
	if !showSettings {
		h.paragraph("Every setting is a flag of every command: see \"kontor settings --help\".")
	}
	_, err := io.WriteString(out, h.String())
	return err
}

// synopsis returns what follows the command in the line that begins with Usage.
func (c *command) synopsis() string {
	text := ""
	if c.isGroup() {
		text = " <command>"
	}
	for _, a := range c.arguments {
		text += " " + a.synopsis()
	}
	c.flags.VisitAll(func(flag *pflag.Flag) {
		if _, required := flag.Annotations[requiredNote]; required {
			text += " --" + flag.Name + "=" + flag.Annotations[placeholderNote][0]
		}
	})
	return text + " [flags]"
}

func (a argument) synopsis() string {
	text := "<" + a.Name + ">"
	if a.repeated {
		text += " ..."
	}
	if a.optional {
		return "[" + text + "]"
	}
	return text
}

// flagName returns a flag as the help shows it, with its placeholder.
func flagName(flag *pflag.Flag) string {
	name := "    --" + flag.Name
	if flag.Shorthand != "" {
		name = "-" + flag.Shorthand + ", --" + flag.Name
	}
	if values := flag.Annotations[placeholderNote]; len(values) > 0 && values[0] != "" {
		name += "=" + values[0]
		if _, repeated := flag.Value.(pflag.SliceValue); repeated {
			name += ",..."
		}
	}
	return name
}

// leaves appends the commands below c, with the names that follow the one of the program.
func (c *command) leaves(all []row) []row {
	for _, child := range c.children {
		if !child.isGroup() {
			_, name, _ := strings.Cut(child.path(), " ")
			all = append(all, row{name, child.help})
		}
		all = child.leaves(all)
	}
	return all
}

// help builds a text that is wrapped at a width.
type help struct {
	strings.Builder
	width int
}

func (h *help) line(text string) { fmt.Fprintln(h, text) }

func (h *help) paragraph(text string) {
	h.line("\n" + strings.Join(wrap(text, h.width), "\n"))
}

// rows prints two columns below a title, or nothing without rows.
func (h *help) rows(title string, rows []row) {
	if len(rows) == 0 {
		return
	}
	h.line("\n" + title + ":")
	left := 0
	for _, r := range rows {
		if n := utf8.RuneCountInString(r.name); n <= maxLeft {
			left = max(left, n)
		}
	}
	left += gap
	for _, r := range rows {
		name := "  " + r.name
		if utf8.RuneCountInString(r.name) > maxLeft {
			h.line(name)
			name = ""
		}
		for _, text := range wrap(r.meaning, h.width-left-2) {
			h.line(fmt.Sprintf("%-*s%s", left+2, name, text))
			name = ""
		}
	}
}

// wrap splits a text into lines of at most width characters. A longer word has a line of its own.
func wrap(text string, width int) []string {
	var lines []string
	line := ""
	for word := range strings.FieldsSeq(text) {
		if line != "" && utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) > width {
			lines = append(lines, line)
			line = ""
		}
		if line != "" {
			line += " "
		}
		line += word
	}
	return append(lines, line)
}

// terminalWidth returns the width of the help on a stream.
func terminalWidth(stream any) int {
	if f, ok := stream.(*os.File); ok {
		if width, _, err := term.GetSize(int(f.Fd())); err == nil && width >= defaultWidth/2 {
			return min(width, maxWidth)
		}
	}
	return defaultWidth
}
