package commands

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/pflag"
)

type completionCommand struct {
	Shell string `arg:"" enum:"bash,zsh,fish" help:"Shell: bash, zsh or fish."`
}

// Help is shown by "kontor completion --help".
func (completionCommand) Help() string {
	return "Add the line for your shell to its start-up file."
}

func (completionCommand) examples() []string {
	return []string{"source <(kontor completion bash)", "source <(kontor completion zsh)", "kontor completion fish | source"}
}

// Run prints the completion script of the shell.
func (c completionCommand) Run(p Process) error {
	_, err := io.WriteString(p.Stdout, completionScripts[c.Shell])
	return err
}

// completeArgument is the first argument that the scripts pass. It is not a command, so that no help lists it.
const completeArgument = "__complete"

// completionScripts call the program with the words up to the cursor, the unfinished one last. The program prints one
// candidate per line: the word, a tab and its description. Without candidates the shell completes file names.
var completionScripts = map[string]string{
	"bash": `# kontor: completion for bash
_kontor() {
    local IFS=$'\n'
    COMPREPLY=($("${COMP_WORDS[0]}" __complete "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null | cut -f1))
}
complete -o default -F _kontor kontor
`,
	"zsh": `#compdef kontor
# kontor: completion for zsh
_kontor() {
    local line
    local -a described
    for line in "${(@f)$("${words[1]}" __complete "${(@)words[2,CURRENT]}" 2>/dev/null)}"; do
        [[ -n $line ]] && described+=("${${line%%$'\t'*}//:/\\:}:${line#*$'\t'}")
    done
    if (( ${#described} )); then
        _describe kontor described
    else
        _files
    fi
}
if [[ ${funcstack[1]} == _kontor ]]; then
    _kontor # zsh has loaded this file for the first completion, and expects its candidates
else
    (( ${+functions[compdef]} )) || { autoload -Uz compinit && compinit }
    compdef _kontor kontor
fi
`,
	"fish": `# kontor: completion for fish
function __kontor_complete
    set -l words (commandline -opc) (commandline -ct)
    set -l found ($words[1] __complete $words[2..-1] 2>/dev/null)
    if test (count $found) -gt 0
        printf '%s\n' $found
    else
        __fish_complete_path (commandline -ct)
    end
end
complete -c kontor -f -a '(__kontor_complete)'
`,
}

// candidate is a possible completion of a word.
type candidate struct{ word, meaning string }

// complete prints the candidates for the last word.
func (l *commandLine) complete(w io.Writer, words []string) {
	last := ""
	if len(words) > 0 {
		words, last = words[:len(words)-1], words[len(words)-1]
	}
	// bash passes --flag=value as three words.
	if last == "=" {
		last = ""
	}
	words = slices.DeleteFunc(slices.Clone(words), func(s string) bool { return s == "=" })
	for _, c := range l.candidates(words, last) {
		if strings.HasPrefix(c.word, last) {
			fmt.Fprintf(w, "%s\t%s\n", c.word, c.meaning)
		}
	}
}

func (l *commandLine) candidates(before []string, last string) []candidate {
	at, pending, arguments := l.walk(before)
	switch {
	case pending != nil:
		return flagValues(pending, "")
	case strings.HasPrefix(last, "--") && strings.Contains(last, "="):
		name, _, _ := strings.Cut(last, "=")
		return flagValues(at.accepted().Lookup(name[2:]), name+"=")
	case strings.HasPrefix(last, "-"):
		return flagNames(at)
	}
	var all []candidate
	for _, child := range at.children {
		all = append(all, candidate{child.name, child.help})
	}
	return append(all, flagValues(at.nextArgument(len(arguments)), "")...)
}

// nextArgument returns the argument that follows the given number of arguments, or nil. The last one may be repeated.
func (c *command) nextArgument(given int) *pflag.Flag {
	n := len(c.arguments)
	if given < n {
		return c.arguments[given].Flag
	}
	if n > 0 && c.arguments[n-1].repeated {
		return c.arguments[n-1].Flag
	}
	return nil
}

// walk follows the words to the command that they name. It also returns the flag whose value is still missing, and the arguments
// that the command already has. Unlike parse, it accepts words that are wrong.
func (l *commandLine) walk(words []string) (at *command, pending *pflag.Flag, arguments []string) {
	at = l.root
	for _, word := range words {
		name, long := strings.CutPrefix(word, "--")
		child := at.child(word)
		switch {
		case pending != nil:
			pending = nil
		case long:
			if flag := at.accepted().Lookup(name); flag != nil && flag.NoOptDefVal == "" {
				pending = flag
			}
		case strings.HasPrefix(word, "-"):
		case child != nil:
			at, arguments = child, nil
		default:
			arguments = append(arguments, word)
		}
	}
	return at, pending, arguments
}

func flagNames(at *command) []candidate {
	var all []candidate
	at.accepted().VisitAll(func(flag *pflag.Flag) {
		all = append(all, candidate{"--" + flag.Name, flag.Usage})
	})
	return all
}

// flagValues returns the known values of a flag or an argument, each with a prefix.
func flagValues(flag *pflag.Flag, prefix string) []candidate {
	if flag == nil {
		return nil
	}
	var all []candidate
	for _, value := range flag.Annotations[candidatesNote] {
		all = append(all, candidate{prefix + value, flag.Usage})
	}
	return all
}
