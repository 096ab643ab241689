package list

import (
	"slices"
	"strings"

	"kontor/server/endpoint"
)

// source is a [Source] without the type of its rows.
type source struct {
	from, columns, id, created string
	tables                     []string
	declared                   Fields
	base                       Where
	hidden                     string

	fields []Field // as declared, completed
	byName map[string]int
	newest []order
	long   []int // columns that count for the size of a page
	shapes shapes
}

// prepare completes a source. It panics for an incomplete declaration; scans reports whether that says how to scan.
func (s *source) prepare(scans bool) {
	if s.from == "" || s.columns == "" || s.id == "" || !scans || len(s.tables) == 0 {
		panic("list: a source needs From, Columns, ID, Tables and Scan")
	}
	s.byName, s.long = make(map[string]int, len(s.declared)), long(s.columns)
	for _, declared := range s.declared {
		f, err := declared.complete()
		if err != nil {
			panic("list: " + s.from + ": " + err.Error())
		}
		if _, twice := s.byName[f.Name]; twice {
			panic("list: " + s.from + ": field " + f.Name + " is duplicate")
		}
		s.byName[f.Name] = len(s.fields)
		s.fields = append(s.fields, f)
	}
	if s.created != "" {
		s.newest = append(s.newest, order{column: s.created, descending: true})
	}
	s.newest = append(s.newest, order{column: s.id, descending: true})
}

// search returns what [List.Search] does.
func (s *source) search() []endpoint.SearchField {
	fields := make([]endpoint.SearchField, len(s.declared))
	for i, f := range s.declared {
		fields[i] = endpoint.SearchField{Name: f.Name, Type: typeNames[f.Type]}
	}
	return fields
}

func (s *source) field(name string) *Field {
	if i, known := s.byName[name]; known {
		return &s.fields[i]
	}
	return nil
}

// longColumns are the columns of all lists whose texts may be long.
var longColumns = []string{"metadata", "description", "assignees", "content", "text"}

// long returns the positions of the long columns among those that a list reads.
func long(columns string) (places []int) {
	for i, column := range strings.Split(columns, ",") {
		if slices.ContainsFunc(strings.Fields(column), func(word string) bool {
			return slices.Contains(longColumns, word[strings.LastIndexByte(word, '.')+1:])
		}) {
			places = append(places, i)
		}
	}
	return places
}
