package commands

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"kontor/modules/rbac"
	"kontor/server/settings"
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
	node, pending, arguments := walk(l.parser.Model.Node, before)
	switch {
	case pending != nil:
		return flagValues(pending)
	case strings.HasPrefix(last, "--") && strings.Contains(last, "="):
		name, _, _ := strings.Cut(last, "=")
		var all []candidate
		for _, c := range flagValues(findFlag(node, name)) {
			all = append(all, candidate{name + "=" + c.word, c.meaning})
		}
		return all
	case strings.HasPrefix(last, "-"):
		return flagNames(node)
	}
	var all []candidate
	for _, child := range node.Children {
		if !child.Hidden {
			all = append(all, candidate{child.Name, child.Help})
		}
	}
	if next := nextArgument(node, len(arguments)); next != nil {
		for _, v := range append(next.EnumSlice(), roleNames(next)...) {
			all = append(all, candidate{v, next.Help})
		}
	}
	return all
}

// nextArgument returns the argument that follows the given number of arguments, or nil. The last one may be repeated.
func nextArgument(node *kong.Node, given int) *kong.Positional {
	n := len(node.Positional)
	if given < n {
		return node.Positional[given]
	}
	if n > 0 && node.Positional[n-1].IsSlice() {
		return node.Positional[n-1]
	}
	return nil
}

// roleNames returns the names of the built-in roles for a flag or an argument that takes roles.
func roleNames(value *kong.Value) []string {
	if value.Tag.Get("complete") != "roles" {
		return nil
	}
	return rbac.BuiltInNames()
}

// walk follows the words from node to the command that they name. It also returns the flag whose value is still missing,
// and the arguments that the command already has.
func walk(node *kong.Node, words []string) (at *kong.Node, pending *kong.Flag, arguments []string) {
	for _, word := range words {
		switch {
		case pending != nil:
			pending = nil
		case strings.HasPrefix(word, "--"):
			if flag := findFlag(node, word); flag != nil && !flag.IsBool() {
				pending = flag
			}
		case strings.HasPrefix(word, "-"):
		default:
			i := slices.IndexFunc(node.Children, func(n *kong.Node) bool { return n.Name == word })
			if i < 0 {
				arguments = append(arguments, word)
				continue
			}
			node, arguments = node.Children[i], nil
		}
	}
	return node, pending, arguments
}

// nodeFlags returns the flags that may follow node: its own and those of its ancestors.
func nodeFlags(node *kong.Node) []*kong.Flag {
	var flags []*kong.Flag
	if node.DefaultCmd != nil {
		flags = append(flags, node.DefaultCmd.Flags...)
	}
	for ; node != nil; node = node.Parent {
		flags = append(flags, node.Flags...)
	}
	return flags
}

func findFlag(node *kong.Node, word string) *kong.Flag {
	for _, flag := range nodeFlags(node) {
		if "--"+flag.Name == word {
			return flag
		}
	}
	return nil
}

func flagNames(node *kong.Node) []candidate {
	var all []candidate
	for _, flag := range nodeFlags(node) {
		all = append(all, candidate{"--" + flag.Name, flag.Help})
	}
	return all
}

func flagValues(flag *kong.Flag) []candidate {
	if flag == nil {
		return nil
	}
	values := append(flag.EnumSlice(), roleNames(flag.Value)...)
	for _, s := range settings.All() {
		if s.Name == flag.Name {
			values = s.Choices
		}
	}
	var all []candidate
	for _, v := range values {
		if v != "" {
			all = append(all, candidate{v, flag.Help})
		}
	}
	return all
}
