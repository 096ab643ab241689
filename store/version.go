package store

import (
	"slices"
	"strings"
	"sync"
	"sync/atomic"
)

// versions counts the commits that touched each table.
type versions struct {
	commits atomic.Uint64
	tables  sync.Map // name → *table
}

// table carries the number of the last commit that wrote to it.
type table struct {
	name string
	last atomic.Uint64
}

func (v *versions) table(name string) *table {
	if t, ok := v.tables.Load(name); ok {
		return t.(*table)
	}
	t, _ := v.tables.LoadOrStore(name, &table{name: name})
	return t.(*table)
}

// bump notes a commit. It comes after the commit and before anybody is told of it, so that a caller
// who knows of a write never sees a number from before it.
func (v *versions) bump(touched []*table) {
	if len(touched) == 0 {
		return
	}
	n := v.commits.Add(1)
	for _, t := range touched {
		t.last.Store(n)
	}
}

// Version gives a number that grows whenever a committed write touched one of the tables. Take it
// before reading what is to be remembered under it. It does not notice what a foreign key deletes
// by itself.
func (db *DB) Version(tables ...string) uint64 {
	var last uint64
	for _, name := range tables {
		last = max(last, db.versions.table(name).last.Load())
	}
	return last
}

// writtenTables finds the tables that a statement writes to: what follows INSERT INTO, UPDATE and
// DELETE FROM, also behind WITH.
func writtenTables(sql string) []string {
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

// sqlWords splits a statement into its words in lower case, without comments and quoted values. A
// quoted name is a word.
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

// lengthTo is the length of s up to and with the end mark, or all of it.
func lengthTo(s, end string) int {
	if n := strings.Index(s, end); n >= 0 {
		return n + len(end)
	}
	return len(s)
}

func wordByte(c byte) bool {
	return c == '_' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= 0x80
}
