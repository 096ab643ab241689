package settings

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// maxFileBytes bounds the settings file. It is far more than all settings with long values need.
const maxFileBytes = 1 << 20

// given is an unparsed value with its source.
type given struct {
	source Source
	where  string // location for errors, such as "kontor.yaml:3"
	raw    string
}

// readFile returns the values of a settings file by name, and its mistakes.
func readFile(name string) (map[string]given, []error) {
	data, err := fileContent(name)
	if err != nil {
		return nil, []error{err}
	}
	return parseFile(name, data)
}

func parseFile(name string, data []byte) (map[string]given, []error) {
	r := fileReader{name: name, values: map[string]given{}}
	root, err := parseDocument(name, data)
	switch {
	case err != nil:
		return nil, []error{err}
	case root == nil || isNull(root):
		return nil, nil
	case root.Kind != yaml.MappingNode:
		return nil, []error{r.errorf(root, "the file must be a mapping of settings to values")}
	}
	r.mapping(root, "")
	return r.values, r.mistakes
}

func fileContent(name string) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, fmt.Errorf("settings file: %w", err)
	}
	defer f.Close() // opened for reading
	data, err := io.ReadAll(io.LimitReader(f, maxFileBytes+1))
	if err != nil {
		return nil, fmt.Errorf("settings file: %w", err)
	}
	if len(data) > maxFileBytes {
		return nil, fmt.Errorf("settings file %s is larger than 1 MiB", name)
	}
	return data, nil
}

// parseDocument returns the root of the only document, or nil for an empty file.
func parseDocument(name string, data []byte) (*yaml.Node, error) {
	var doc, second yaml.Node
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	if err := decoder.Decode(&doc); errors.Is(err, io.EOF) {
		return nil, nil
	} else if err != nil {
		return nil, syntaxError(name, err)
	}
	if err := decoder.Decode(&second); err == nil {
		return nil, fmt.Errorf("%s:%d: the file must contain only one document", name, second.Line)
	} else if !errors.Is(err, io.EOF) {
		return nil, syntaxError(name, err)
	}
	return doc.Content[0], nil
}

var yamlLine = regexp.MustCompile(`^line (\d+): `)

// syntaxError converts the parser's error to one line that starts with file and line number.
func syntaxError(name string, err error) error {
	message := strings.TrimPrefix(strings.Join(strings.Fields(err.Error()), " "), "yaml: ")
	if m := yamlLine.FindStringSubmatch(message); m != nil {
		return fmt.Errorf("%s:%s: not valid YAML: %s", name, m[1], message[len(m[0]):])
	}
	return fmt.Errorf("%s: not valid YAML: %s", name, message)
}

type fileReader struct {
	name     string
	values   map[string]given
	mistakes []error
}

func (r *fileReader) errorf(n *yaml.Node, format string, args ...any) error {
	return fmt.Errorf("%s:%d: %s", r.name, n.Line, fmt.Sprintf(format, args...))
}

// mapping reads the members below prefix. Nested and dotted names are equivalent and may be mixed.
func (r *fileReader) mapping(n *yaml.Node, prefix string) {
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		if key.Kind != yaml.ScalarNode || key.Tag == "!!merge" {
			r.mistakes = append(r.mistakes, r.errorf(key, "a setting's name must be plain text"))
		} else if err := r.member(prefix+key.Value, key, value); err != nil {
			r.mistakes = append(r.mistakes, err)
		}
	}
}

func (r *fileReader) member(name string, key, value *yaml.Node) error {
	if value.Kind == yaml.AliasNode || value.Anchor != "" {
		return r.errorf(value, "%s: anchors and aliases are not supported", shorten(name))
	}
	s, known := lookUp(name)
	if known && s.EnvironmentOnly {
		return r.errorf(key, "%s can only be set in the environment", s.Name)
	}
	if !known {
		if value.Kind == yaml.MappingNode && isGroup(name) {
			r.mapping(value, name+".")
			return nil
		}
		if isNull(value) && isGroup(name) {
			return nil
		}
		return r.errorf(key, "unknown setting %q%s", shorten(name), DidYouMean(name, fileNames()))
	}
	if before, twice := r.values[name]; twice {
		return r.errorf(key, "%s is set twice, first at %s", name, before.where)
	}
	raw, err := r.scalar(s, value)
	if err != nil {
		return err
	}
	if isNull(value) { // "name:" without a value: the line is ignored
		return nil
	}
	r.values[name] = given{source: FromFile, where: fmt.Sprintf("%s:%d", r.name, key.Line), raw: raw}
	return nil
}

func (r *fileReader) scalar(s Setting, n *yaml.Node) (string, error) {
	switch {
	case n.Kind == yaml.ScalarNode:
		return n.Value, nil
	case n.Kind == yaml.SequenceNode && s.List:
		items := make([]string, 0, len(n.Content))
		for _, item := range n.Content {
			if item.Kind != yaml.ScalarNode || isNull(item) {
				return "", r.errorf(item, "%s must be a list of plain values", s.Name)
			}
			items = append(items, item.Value)
		}
		return strings.Join(items, ","), nil
	}
	return "", r.errorf(n, "%s must be a single value", s.Name)
}

func isNull(n *yaml.Node) bool { return n.Kind == yaml.ScalarNode && n.Tag == "!!null" }

// isGroup reports whether there are settings below name.
func isGroup(name string) bool {
	return slices.ContainsFunc(registry, func(s Setting) bool { return strings.HasPrefix(s.Name, name+".") })
}

func fileNames() []string {
	var names []string
	for _, s := range registry {
		if !s.EnvironmentOnly {
			names = append(names, s.Name)
		}
	}
	return names
}
