package list

import (
	"context"
	"crypto/sha256"
	"database/sql/driver"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"kontor/server/endpoint"
	"kontor/store"
)

// countedRows is the column of a count with the number of rows.
const countedRows = ", count(*) AS rows"

// counting returns the statement that counts the rows of a condition, by an expression, with what the store needs to keep the
// numbers right while rows change.
func (q *query) counting(db Store, expression string, condition *builder) *store.Counting {
	where := condition.sql()
	c := &store.Counting{SQL: "SELECT " + expression + " AS value" + countedRows + " FROM " + q.from + where, Args: condition.args}
	if q.hidden != "" && where == q.base && expression == noValue {
		c.SQL = "SELECT " + noValue + " AS value, (SELECT count(*) FROM " + q.name + ") - (SELECT count(*) FROM " + q.name + " WHERE " + q.hidden + ") AS rows"
	}
	view := !slices.Contains(plainNames(q.tables), q.name)
	var seen []string
	for _, text := range q.tables {
		table, key, keyed := strings.Cut(text, ".")
		if slices.Contains(seen, table) {
			continue
		}
		seen = append(seen, table)
		switch {
		case table == q.name:
			c.Rows = slices.Insert(c.Rows, 0, store.KeyedTable{Table: table, Key: unqualified(q.id)})
		case keyed && view:
			c.Rows = append(c.Rows, store.KeyedTable{Table: table, Key: key, View: q.name})
		case keyed:
			c.Rows = append(c.Rows, store.KeyedTable{Table: table, Key: key})
		default:
			c.Tables = append(c.Tables, table)
		}
	}
	if len(c.Rows) > 0 && c.Rows[0].Table != q.name && c.Rows[0].View == "" { // the rows themselves are not followed
		for _, t := range c.Rows {
			c.Tables = append(c.Tables, t.Table)
		}
		c.Rows = nil
	}
	if len(c.Rows) > 0 && c.Rows[0].View == "" {
		c.Only = func(ctx context.Context) ([]store.Alternatives, error) { return q.only(ctx, db, condition) }
	}
	return c
}

// grouping is counting for each value of the expression.
func (q *query) grouping(db Store, expression string, condition *builder) *store.Counting {
	c := q.counting(db, expression, condition)
	c.Each = strings.Replace(c.SQL, countedRows, "", 1)
	c.SQL += " GROUP BY 1"
	return c
}

// only returns the conditions that compare columns of the main table with values.
func (q *query) only(ctx context.Context, db Store, condition *builder) (all []store.Alternatives, err error) {
	alone := !strings.Contains(q.from, " JOIN ")
	for _, conjunct := range conjuncts(strings.TrimPrefix(condition.sql(), " WHERE ")) {
		if equal, ok := equality(conjunct, condition.args, q.name, alone); ok {
			all = append(all, store.Alternatives{Equal: []store.Equal{equal}})
		}
	}
	var either store.Alternatives
	for _, alternative := range q.any {
		equal, ok := equality(alternative, condition.args, q.name, alone)
		if !ok {
			return all, nil
		}
		either.Equal = append(either.Equal, equal)
	}
	if len(either.Equal) == 0 {
		return all, nil
	}
	if q.granted != "" {
		few := false
		if either.Keys, few, err = q.grantedKeys(ctx, db); err != nil || !few {
			return all, err
		}
	}
	return append(all, either), nil
}

// maxGranted bounds the ids of granted records that are compared with the changed ones.
const maxGranted = 500

// grantedKeys returns the ids of the granted records. It returns false when there are too many.
func (q *query) grantedKeys(ctx context.Context, db Store) (map[string]bool, bool, error) {
	w := q.restriction
	if !strings.Contains(w.Granted, "$"+strconv.Itoa(len(w.Args))) { // it would not take all arguments
		return nil, false, nil
	}
	c := &store.Counting{Args: w.Args, Tables: plainNames(w.Tables), SQL: "SELECT granted.id AS value, count(*) AS rows FROM (WITH ids (id) AS (" +
		w.Granted + ") SELECT DISTINCT id FROM ids LIMIT " + strconv.Itoa(maxGranted+1) + ") AS granted GROUP BY 1"}
	groups, err := db.Count(ctx, memoKey(c.SQL, c.Args), c)
	if err != nil || len(groups) > maxGranted {
		return nil, false, err
	}
	keys := make(map[string]bool, len(groups))
	for _, g := range groups {
		if id, ok := g.Value.(string); ok {
			keys[id] = true
		}
	}
	return keys, true, nil
}

// comparison is the condition "column = $n", also in parentheses.
var comparison = regexp.MustCompile(`^\(?(?:(\w+)\.)?(\w+) = \$(\d+)\)?$`)

// equality returns the comparison of a column of the main table with a value, if the condition is one.
func equality(condition string, args []any, main string, alone bool) (store.Equal, bool) {
	m := comparison.FindStringSubmatch(strings.TrimSpace(condition))
	if m == nil || m[1] != main && !alone {
		return store.Equal{}, false
	}
	n, err := strconv.Atoi(m[3])
	if err != nil || n < 1 || n > len(args) {
		return store.Equal{}, false
	}
	switch value := args[n-1].(type) {
	case string, int64, bool:
		return store.Equal{Column: m[2], Value: value}, true
	}
	return store.Equal{}, false
}

// conjuncts splits a condition at AND outside of parentheses. Outside of them a condition never has OR: the builder puts alternatives and the
// conditions of callers into parentheses. A condition with a quoted text, which may hold anything, has no parts.
func conjuncts(condition string) (parts []string) {
	if strings.Contains(condition, "'") {
		return nil
	}
	depth, start := 0, 0
	for i := range len(condition) {
		switch {
		case condition[i] == '(':
			depth++
		case condition[i] == ')':
			depth--
		case depth == 0 && strings.HasPrefix(condition[i:], " AND "):
			parts = append(parts, condition[start:i])
			start = i + len(" AND ")
		}
	}
	return append(parts, condition[start:])
}

// plainNames returns the names of tables without their keys.
func plainNames(tables []string) []string {
	names := make([]string, len(tables))
	for i, text := range tables {
		names[i], _, _ = strings.Cut(text, ".")
	}
	return names
}

func unqualified(column string) string { return column[strings.LastIndexByte(column, '.')+1:] }

// counter counts and remembers, as *store.DB does.
type counter interface {
	Count(ctx context.Context, key string, c *store.Counting) ([]store.Group, error)
}

// noValue is the expression of a count without groups.
const noValue = "NULL"

// countRows returns the number of rows that meet a condition.
func (q *query) countRows(ctx context.Context, db Store, condition *builder) (int64, error) {
	return q.count(ctx, db, q.counting(db, noValue, condition))
}

// count returns the number of rows that a statement without groups counts.
func (q *query) count(ctx context.Context, db Store, c *store.Counting) (int64, error) {
	groups, err := countNoted(ctx, db, c)
	if err != nil {
		return 0, fmt.Errorf("count %s: %w", q.name, err)
	}
	if len(groups) == 0 {
		return 0, nil
	}
	return groups[0].Rows, nil
}

// countNoted counts, and notes it in the explanation of the request, if there is one.
func countNoted(ctx context.Context, db Store, c *store.Counting) ([]store.Group, error) {
	x := endpoint.Of(ctx).Explanation
	if x == nil {
		return db.Count(ctx, memoKey(c.SQL, c.Args), c)
	}
	done, rows := x.Begin(endpoint.Step{Name: stepCount, Plan: planRemembered, Why: whyRemembered, SQL: c.SQL}), int64(0)
	groups, err := db.Count(ctx, memoKey(c.SQL, c.Args), c)
	for _, g := range groups {
		rows += g.Rows
	}
	done(rows)
	return groups, err
}

// countGroups returns the number of matching rows for each value of an expression.
func (q *query) countGroups(ctx context.Context, db Store, expression string) ([]store.Group, error) {
	groups, err := countNoted(ctx, db, q.grouping(db, expression, q.matching))
	if err != nil {
		return nil, fmt.Errorf("count the groups of %s: %w", q.name, err)
	}
	return groups, nil
}

// memoKey returns the cache key of a statement with its arguments. The digest keeps searched values out of the cache, and keys
// short.
func memoKey(sql string, args []any) string {
	var space [512]byte
	text := append(space[:0], sql...)
	for _, arg := range args {
		text = appendArg(text, arg)
	}
	key := sha256.Sum256(text)
	return string(key[:])
}

// appendArg appends an argument with its length, so that different lists of arguments have different keys.
func appendArg(b []byte, arg any) []byte {
	if text, ok := arg.(string); ok {
		return append(appendLength(b, 'v', len(text)), text...)
	}
	if p := reflect.ValueOf(arg); p.Kind() == reflect.Pointer && p.IsNil() {
		arg = nil
	}
	var text []byte
	switch v := arg.(type) {
	case nil:
	case driver.Valuer:
		// The key contains the value that the database receives. Its error is reported when it is bound.
		if stored, err := v.Value(); err == nil {
			return appendArg(b, stored)
		}
	default:
		// The key contains the value behind the pointer, because it may change.
		if p := reflect.ValueOf(arg); p.Kind() == reflect.Pointer {
			return appendArg(b, p.Elem().Interface())
		}
		text = fmt.Append(nil, arg)
	}
	kind := byte('v')
	if arg == nil {
		kind = 'n'
	}
	return append(appendLength(b, kind, len(text)), text...)
}

func appendLength(b []byte, kind byte, length int) []byte {
	return append(strconv.AppendInt(append(b, 0, kind), int64(length), 10), ':')
}
