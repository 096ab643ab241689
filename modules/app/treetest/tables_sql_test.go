package treetest_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// unknownText stands for a part of a text that is only known when the program runs.
const unknownText = "\x00"

// sqlText is a text of a Go package, with its position. Its constants and concatenations are resolved.
type sqlText struct {
	text string
	pos  token.Position
}

// textsOf returns all texts in the files of a package, by file name and source.
func textsOf(t *testing.T, files map[string]string) []sqlText {
	t.Helper()
	p := &goTexts{fset: token.NewFileSet(), values: map[string]ast.Expr{}}
	var parsed []*ast.File
	for name, source := range files {
		file, err := parser.ParseFile(p.fset, name, source, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		p.declare(file)
		parsed = append(parsed, file)
	}
	for _, file := range parsed {
		ast.Inspect(file, p.visit)
	}
	return p.found
}

// goTexts collects the texts of a package.
type goTexts struct {
	fset      *token.FileSet
	values    map[string]ast.Expr // of constants and variables of the package
	resolving []string            // names, against endless recursion
	found     []sqlText
}

// declare records the constants and variables of a file.
func (p *goTexts) declare(file *ast.File) {
	for _, declaration := range file.Decls {
		general, ok := declaration.(*ast.GenDecl)
		if !ok {
			continue
		}
		for _, spec := range general.Specs {
			value, ok := spec.(*ast.ValueSpec)
			if !ok || len(value.Values) != len(value.Names) {
				continue
			}
			for i, name := range value.Names {
				p.values[name.Name] = value.Values[i]
			}
		}
	}
}

// visit collects the text of a node. A part of a larger text is not collected again.
func (p *goTexts) visit(node ast.Node) bool {
	switch n := node.(type) {
	case *ast.ImportSpec:
		return false
	case *ast.Field:
		n.Tag = nil // the tag of a member is no SQL
	case *ast.CompositeLit:
		p.visitDeclaration(n)
	case *ast.BasicLit:
		if n.Kind == token.STRING {
			p.add(p.resolve(n), n)
		}
	case *ast.BinaryExpr:
		if n.Op == token.ADD {
			p.add(p.resolve(n), n)
			p.visitUnknown(n)
			return false
		}
	case *ast.CallExpr:
		if text, ok := p.formatted(n); ok {
			p.add(text, n)
			for _, arg := range n.Args {
				if _, literal := arg.(*ast.BasicLit); !literal {
					ast.Inspect(arg, p.visit)
				}
			}
			return false
		}
	}
	return true
}

var declaresTable = regexp.MustCompile(`^(list\.Source|records\.Table|records\.Proof|recordtype\.Declaration|Source|Table|Proof)$`)

// visitDeclaration collects the table that a list.Source, records.Table, records.Proof or recordtype.Declaration names in its member
// From.
func (p *goTexts) visitDeclaration(literal *ast.CompositeLit) {
	kind := literal.Type
	if generic, ok := kind.(*ast.IndexExpr); ok {
		kind = generic.X
	}
	if kind == nil || !declaresTable.MatchString(types.ExprString(kind)) {
		return
	}
	for _, element := range literal.Elts {
		pair, ok := element.(*ast.KeyValueExpr)
		if !ok {
			continue
		}
		if key, ok := pair.Key.(*ast.Ident); ok && key.Name == "From" {
			p.add("FROM "+p.resolve(pair.Value), pair.Value)
		}
	}
}

// visitUnknown visits what a concatenation holds beside literals and names.
func (p *goTexts) visitUnknown(e ast.Expr) {
	switch e := e.(type) {
	case *ast.BinaryExpr:
		p.visitUnknown(e.X)
		p.visitUnknown(e.Y)
	case *ast.BasicLit, *ast.Ident:
	default:
		ast.Inspect(e, p.visit)
	}
}

func (p *goTexts) add(text string, node ast.Node) {
	p.found = append(p.found, sqlText{text, p.fset.Position(node.Pos())})
}

// resolve returns the text of an expression.
func (p *goTexts) resolve(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.BasicLit:
		if text, err := strconv.Unquote(e.Value); err == nil && e.Kind == token.STRING {
			return text
		}
	case *ast.ParenExpr:
		return p.resolve(e.X)
	case *ast.BinaryExpr:
		if e.Op == token.ADD {
			return p.resolve(e.X) + p.resolve(e.Y)
		}
	case *ast.Ident:
		if value, ok := p.values[e.Name]; ok && !slices.Contains(p.resolving, e.Name) {
			p.resolving = append(p.resolving, e.Name)
			text := p.resolve(value)
			p.resolving = p.resolving[:len(p.resolving)-1]
			return text
		}
	case *ast.CallExpr:
		if text, ok := p.formatted(e); ok {
			return text
		}
	}
	return unknownText
}

var verbs = regexp.MustCompile(`%(?:\[(\d+)\])?[sdvqc]`)

// formatted returns the text of a call of fmt.Sprintf and its relatives.
func (p *goTexts) formatted(call *ast.CallExpr) (text string, ok bool) {
	f, ok := call.Fun.(*ast.SelectorExpr)
	if !ok || !strings.HasSuffix(f.Sel.Name, "rintf") && f.Sel.Name != "Appendf" {
		return "", false
	}
	format := slices.IndexFunc(call.Args, func(arg ast.Expr) bool { return strings.Contains(p.resolve(arg), "%") })
	if format < 0 {
		return "", false
	}
	next := 0
	return verbs.ReplaceAllStringFunc(p.resolve(call.Args[format]), func(verb string) string {
		if explicit := verbs.FindStringSubmatch(verb)[1]; explicit != "" {
			next, _ = strconv.Atoi(explicit)
			next--
		}
		next++
		if at := format + next; at < len(call.Args) {
			return p.resolve(call.Args[at])
		}
		return unknownText
	}), true
}

var (
	beforeTable = regexp.MustCompile(`(?i)\b(FROM|JOIN|INTO|UPDATE|TABLE(?:\s+IF(?:\s+NOT)?\s+EXISTS)?)\b`)
	tableName   = regexp.MustCompile(`^\s*(?:"?main"?\.)?["` + "`" + `]?([A-Za-z_][A-Za-z0-9_]*)["` + "`" + `]?`)
	tableAlias  = regexp.MustCompile(`(?i)^\s+(?:AS\s+)?([a-z_][a-z0-9_]*)`)
	notAnAlias  = regexp.MustCompile(`(?i)^(WHERE|JOIN|LEFT|RIGHT|INNER|OUTER|CROSS|FULL|NATURAL|ON|USING|ORDER|GROUP|HAVING|LIMIT|UNION|SET|VALUES|RETURNING|INDEXED|NOT)$`)
	comments    = regexp.MustCompile(`--[^\n]*`)
	inStatement = regexp.MustCompile(`(?is)\bSELECT\b.*\bFROM\b|\bINSERT\b.*\bINTO\b|\bDELETE\s+FROM\b|\bUPDATE\s+\S+\s+SET\b|^\s*FROM\s|\b[A-Z]+ TABLE\b|\bJOIN\b.*\bON\b`)
)

// tablesIn returns the names that a text has where SQL has those of tables and views. built reports that one of them is only
// known when the program runs. Words of English texts are among the names.
func tablesIn(text string) (names []string, built bool) {
	text = comments.ReplaceAllString(text, "")
	if !inStatement.MatchString(text) {
		return nil, false
	}
	for _, keyword := range beforeTable.FindAllStringIndex(text, -1) {
		for rest := text[keyword[1]:]; ; {
			name := tableName.FindStringSubmatch(rest)
			if name == nil {
				// Only in capitals: a sentence may end with "from".
				built = built || strings.HasPrefix(strings.TrimSpace(rest), unknownText) && text[keyword[0]:keyword[1]] == strings.ToUpper(text[keyword[0]:keyword[1]])
				break
			}
			names = append(names, name[1])
			rest = rest[len(name[0]):]
			if alias := tableAlias.FindStringSubmatch(rest); alias != nil && !notAnAlias.MatchString(alias[1]) {
				rest = rest[len(alias[0]):]
			}
			after, more := strings.CutPrefix(strings.TrimSpace(rest), ",")
			if !more {
				break
			}
			rest = after
		}
	}
	return names, built
}
