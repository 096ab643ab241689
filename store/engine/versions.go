package engine

import (
	"slices"
	"strings"
	"sync"
	"sync/atomic"
)

// Versions counts the commits that wrote to each table. It implements Engine.Version for an engine whose tables no other
// process writes.
type Versions struct {
	commits atomic.Uint64
	tables  sync.Map // name → *Table
}

// A Table carries the number of the last commit that wrote to it.
type Table struct {
	name string
	last atomic.Uint64
}

// Written returns the tables that a statement writes to. Call it once for each text: it parses.
func (v *Versions) Written(sql string) []*Table {
	names := WrittenTables(sql)
	tables := make([]*Table, len(names))
	for i, name := range names {
		tables[i] = v.table(name)
	}
	return tables
}

func (v *Versions) table(name string) *Table {
	if t, ok := v.tables.Load(name); ok {
		return t.(*Table)
	}
	t, _ := v.tables.LoadOrStore(name, &Table{name: name})
	return t.(*Table)
}

// Bump counts a commit that wrote to tables. Call it after the commit and before any caller is answered, so that a caller
// that has seen a write never gets an earlier number.
func (v *Versions) Bump(written []*Table) {
	if len(written) == 0 {
		return
	}
	n := v.commits.Add(1)
	for _, t := range written {
		t.last.Store(n)
	}
}

// Version returns the number of the last commit that wrote to one of the tables.
func (v *Versions) Version(tables ...string) uint64 {
	var last uint64
	for _, name := range tables {
		last = max(last, v.table(name).last.Load())
	}
	return last
}

// WrittenTables returns the names of the tables that a statement writes to: those after INSERT INTO, UPDATE and DELETE
// FROM, also within WITH.
func WrittenTables(sql string) []string {
	var found []string
	words := sqlWords(sql)
	for i := 0; i+1 < len(words); i++ {
		next := i + 1
		switch words[i] {
		case "into", "from":
			if verb := words[max(i-1, 0)]; words[i] == "from" && verb != "delete" {
				continue
			}
		case "update":
			if words[next] == "or" { // UPDATE OR IGNORE t
				next += 2
			}
			if next >= len(words) || words[next] == "set" { // ON CONFLICT DO UPDATE SET
				continue
			}
		default:
			continue
		}
		if name := words[next]; !slices.Contains(found, name) {
			found = append(found, name)
		}
	}
	return found
}

// sqlWords returns the words of a statement in lower case, without comments and quoted values. A quoted name is a word.
func sqlWords(sql string) []string {
	var words []string
	for i := 0; i < len(sql); {
		c := sql[i]
		switch {
		case strings.HasPrefix(sql[i:], "--"):
			i += lengthTo(sql[i:], "\n")
		case strings.HasPrefix(sql[i:], "/*"):
			i += lengthTo(sql[i:], "*/")
		case c == '\'':
			i += 1 + lengthTo(sql[i+1:], "'")
		case c == '"':
			n := lengthTo(sql[i+1:], `"`)
			words = append(words, strings.ToLower(strings.TrimSuffix(sql[i+1:i+1+n], `"`)))
			i += 1 + n
		case wordByte(c):
			n := 1
			for i+n < len(sql) && wordByte(sql[i+n]) {
				n++
			}
			words = append(words, strings.ToLower(sql[i:i+n]))
			i += n
		default:
			i++
		}
	}
	return words
}

// lengthTo returns the length of s up to and including the end mark, or that of all of s.
func lengthTo(s, end string) int {
	if n := strings.Index(s, end); n >= 0 {
		return n + len(end)
	}
	return len(s)
}

func wordByte(c byte) bool {
	return c == '_' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= 0x80
}
