package list

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"

	"kontor/store"
)

// fewGroups returns the number of visible rows for each value of a field with few values. It returns false when there are too many
// values.
func (q *query) fewGroups(ctx context.Context, db Store, f *Field) ([]store.Group, bool, error) {
	c := q.counting(db, f.sortColumn(), q.visible)
	c.Each = strings.Replace(c.SQL, countedRows, "", 1)
	c.SQL += " GROUP BY 1"
	c.MaxGroups = maxDistinct
	groups, err := db.Count(ctx, memoKey(c.SQL, c.Args), c)
	if errors.Is(err, store.ErrTooManyGroups) {
		return nil, false, nil
	}
	return groups, err == nil, err
}

// countMatching returns the number of matching rows. For one searched field with few values it adds up the rows of the values.
func (s *source) countMatching(ctx context.Context, db Store, q *query, p Params) (n int64, err error) {
	if len(p.search) == 1 && p.text == nil {
		if f := s.field(p.search[0].name); f.Few {
			groups, ok, err := q.fewGroups(ctx, db, f)
			if err != nil {
				return 0, err
			}
			if ok {
				for _, g := range groups {
					if f.meets(g.Value, p.search[0]) {
						n += g.Rows
					}
				}
				return n, nil
			}
		}
	}
	return q.countMatches(ctx, db)
}

// meets reports whether a stored value meets the condition that matching appends for the search.
func (f *Field) meets(value any, s search) bool {
	values := s.values
	switch {
	case f.Null && value == nil:
		return s.null || slices.Contains(values, "")
	case !f.Null && s.null:
		values = append(slices.Clone(values), nullWord)
	}
	return slices.ContainsFunc(values, func(given string) bool {
		if f.Type == Bool {
			return isTrue(value) && strings.EqualFold(given, "true") || !isTrue(value) && strings.EqualFold(given, "false")
		}
		text, _ := value.(string)
		switch {
		case strings.Trim(given, "*") == "" && given != "":
			return text != ""
		case strings.Contains(given, "*"):
			return matchesPattern(text, f.Fold(given))
		}
		return text == f.Fold(given)
	})
}

// isTrue returns a stored value of the type BOOLEAN, which is a number on SQLite.
func isTrue(value any) bool { return value == true || value == int64(1) }

// matchesPattern compares a text with a pattern in which asterisks stand for any characters, as LIKE does.
func matchesPattern(text, pattern string) bool {
	parts := strings.Split(pattern, "*")
	text, ok := strings.CutPrefix(text, parts[0])
	last := parts[len(parts)-1]
	for _, part := range parts[1 : len(parts)-1] {
		place := strings.Index(text, part)
		if place < 0 {
			return false
		}
		text = text[place+len(part):]
	}
	return ok && strings.HasSuffix(text, last)
}

// compareValues compares stored values as the databases order them: NULL first.
func compareValues(a, b any) int {
	if a == nil || b == nil {
		return cmp.Compare(presence(a), presence(b))
	}
	switch a := a.(type) {
	case string:
		b, _ := b.(string)
		return strings.Compare(a, b)
	case int64:
		b, _ := b.(int64)
		return cmp.Compare(a, b)
	case []byte:
		b, _ := b.([]byte)
		return bytes.Compare(a, b)
	}
	return cmp.Compare(presence(isTrue(a)), presence(isTrue(b)))
}

// presence orders what is missing before what is there.
func presence(value any) int {
	if value == nil || value == false {
		return 0
	}
	return 1
}
