package seed

import (
	"bytes"
	"encoding/base64"
	"errors"
	"io"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// syntax is the key of mistakes that the library for YAML finds.
const syntaxKey = "invalid.seed_syntax"

// decode returns the root of the only document. JSON is a part of YAML.
func decode(data []byte) (root *yaml.Node, err error) {
	defer func() {
		if recover() != nil { // a mistake of the library must not end the process
			root, err = nil, &Problem{Line: 1, Key: syntaxKey, Args: map[string]any{"Problem": "the file cannot be read"}}
		}
	}()
	var document, second yaml.Node
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	if err := decoder.Decode(&document); errors.Is(err, io.EOF) {
		return nil, &Problem{Line: 1, Key: "invalid.seed_empty"}
	} else if err != nil {
		return nil, syntaxProblem(err)
	}
	if err := decoder.Decode(&second); err == nil {
		return nil, &Problem{Line: second.Line, Key: "invalid.seed_documents"}
	} else if !errors.Is(err, io.EOF) {
		return nil, syntaxProblem(err)
	}
	if len(document.Content) != 1 {
		return nil, &Problem{Line: 1, Key: "invalid.seed_empty"}
	}
	return document.Content[0], nil
}

var yamlLine = regexp.MustCompile(`^yaml: (?:unmarshal errors:\s*)?(?:line (\d+): )?`)

func syntaxProblem(err error) *Problem {
	p := &Problem{Line: 1, Key: syntaxKey}
	said := err.Error()
	if found := yamlLine.FindStringSubmatch(said); found != nil {
		if n, err := strconv.Atoi(found[1]); err == nil {
			p.Line = n
		}
		said = said[len(found[0]):]
	}
	p.Args = map[string]any{"Problem": strings.ToValidUTF8(said, "?")}
	return p
}

// reader turns nodes of YAML into values: nil, bool, int64, float64, string, []byte, list and mapping. It counts them, so that aliases
// cannot make a small file large.
type reader struct {
	nodes int
	step  string
	open  map[*yaml.Node]bool // anchors that are being read
}

// node is a value with its line: that of its name, for the member of a mapping.
type node struct {
	name  string // of a member
	line  int
	value any
}

// mapping is an object, whose members keep their order.
type mapping []node

// list is an array.
type list []node

// get returns a member.
func (m mapping) get(name string) (member node, given bool) {
	i := slices.IndexFunc(m, func(n node) bool { return n.name == name })
	if i < 0 {
		return node{}, false
	}
	return m[i], true
}

// called returns a node under the name by which a message names it.
func (n node) called(name string) node {
	n.name = name
	return n
}

// below returns a member under its name with that of its mapping.
func (n node) below(mapping string) node { return n.called(mapping + "." + n.name) }

func (r *reader) problem(n *yaml.Node, key string, args map[string]any) *Problem {
	return &Problem{Line: max(n.Line, 1), Step: r.step, Key: key, Args: args}
}

// value reads a node.
func (r *reader) value(n *yaml.Node, depth int) (any, error) {
	if r.nodes++; r.nodes > maxNodes {
		return nil, r.problem(n, "invalid.seed_too_large", map[string]any{"Max": maxNodes})
	}
	if depth > MaxDepth {
		return nil, r.problem(n, "invalid.seed_depth", map[string]any{"Max": MaxDepth})
	}
	switch n.Kind {
	case yaml.AliasNode:
		if r.open[n.Alias] {
			return nil, r.problem(n, "invalid.seed_depth", map[string]any{"Max": MaxDepth})
		}
		r.open[n.Alias] = true
		defer delete(r.open, n.Alias)
		return r.value(n.Alias, depth+1)
	case yaml.MappingNode:
		return r.mapping(n, depth)
	case yaml.SequenceNode:
		found := make(list, len(n.Content))
		for i, child := range n.Content {
			one, err := r.value(child, depth+1)
			if err != nil {
				return nil, err
			}
			found[i] = node{line: child.Line, value: one}
		}
		return found, nil
	case yaml.ScalarNode:
		return r.scalar(n)
	}
	return nil, r.problem(n, "invalid.seed_type", nil)
}

func (r *reader) mapping(n *yaml.Node, depth int) (any, error) {
	m, known := mapping{}, map[string]bool{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		name := n.Content[i]
		if name.Kind != yaml.ScalarNode || name.ShortTag() == "!!merge" {
			return nil, r.problem(name, "invalid.seed_member", nil)
		}
		if known[name.Value] {
			return nil, r.problem(name, "invalid.seed_twice", map[string]any{"Name": name.Value})
		}
		one, err := r.value(n.Content[i+1], depth+1)
		if err != nil {
			return nil, err
		}
		known[name.Value] = true
		m = append(m, node{name.Value, name.Line, one})
	}
	return m, nil
}

// scalar reads a scalar. Dates stay the texts that they are in the API.
func (r *reader) scalar(n *yaml.Node) (any, error) {
	wrong := r.problem(n, "invalid.seed_type", nil)
	switch n.ShortTag() {
	case "!!null":
		return nil, nil
	case "!!bool":
		var b bool
		if n.Decode(&b) == nil {
			return b, nil
		}
	case "!!int":
		var i int64
		if n.Decode(&i) == nil {
			return i, nil
		}
	case "!!float":
		f, err := strconv.ParseFloat(strings.ReplaceAll(n.Value, "_", ""), 64)
		if err == nil && !math.IsNaN(f) && !math.IsInf(f, 0) {
			return f, nil
		}
	case "!!binary":
		if content, ok := contentOf(n.Value); ok {
			return content, nil
		}
	case "!!str", "!!timestamp":
		return n.Value, nil
	}
	return nil, wrong
}

// contentOf returns the content of a file: !!binary in YAML, or a text in base64.
func contentOf(value any) ([]byte, bool) {
	switch v := value.(type) {
	case []byte:
		return v, true
	case string:
		content, err := base64.StdEncoding.DecodeString(strings.Join(strings.Fields(v), ""))
		return content, err == nil
	}
	return nil, false
}
