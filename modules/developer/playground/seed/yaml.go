package seed

import (
	"bytes"
	"encoding/base64"
	"errors"
	"io"
	"math"
	"regexp"
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

// reader turns nodes of YAML into values: nil, bool, int64, float64, string, []any and mapping. It counts them, so that aliases
// cannot make a small file large.
type reader struct {
	nodes int
	step  string
	open  map[*yaml.Node]bool // anchors that are being read
}

// mapping is an object whose members keep their order.
type mapping struct {
	names  []string
	values map[string]any
	lines  map[string]int
	line   int
}

// list is an array with the lines of its entries.
type list struct {
	entries []any
	lines   []int
}

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
		found := list{entries: make([]any, 0, len(n.Content)), lines: make([]int, 0, len(n.Content))}
		for _, child := range n.Content {
			one, err := r.value(child, depth+1)
			if err != nil {
				return nil, err
			}
			found.entries, found.lines = append(found.entries, one), append(found.lines, child.Line)
		}
		return found, nil
	case yaml.ScalarNode:
		return r.scalar(n)
	}
	return nil, r.problem(n, "invalid.seed_type", nil)
}

func (r *reader) mapping(n *yaml.Node, depth int) (any, error) {
	m := mapping{values: map[string]any{}, lines: map[string]int{}, line: n.Line}
	for i := 0; i+1 < len(n.Content); i += 2 {
		name := n.Content[i]
		if name.Kind != yaml.ScalarNode || name.ShortTag() == "!!merge" {
			return nil, r.problem(name, "invalid.seed_member", nil)
		}
		if _, twice := m.values[name.Value]; twice {
			return nil, r.problem(name, "invalid.seed_twice", map[string]any{"Name": name.Value})
		}
		one, err := r.value(n.Content[i+1], depth+1)
		if err != nil {
			return nil, err
		}
		m.names = append(m.names, name.Value)
		m.values[name.Value], m.lines[name.Value] = one, name.Line
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
		if n.Decode(&b) != nil {
			return nil, wrong
		}
		return b, nil
	case "!!int":
		var i int64
		if n.Decode(&i) != nil {
			return nil, wrong
		}
		return i, nil
	case "!!float":
		f, err := strconv.ParseFloat(strings.ReplaceAll(n.Value, "_", ""), 64)
		if err != nil || math.IsNaN(f) || math.IsInf(f, 0) {
			return nil, wrong
		}
		return f, nil
	case "!!binary":
		content, ok := contentOf(n.Value)
		if !ok {
			return nil, wrong
		}
		return content, nil
	case "!!str", "!!timestamp":
		return n.Value, nil
	}
	return nil, wrong // another tag
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
