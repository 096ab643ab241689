package engine

import "context"

// A Counting is a statement that counts rows and that an engine may bring up to date instead of running it again.
type Counting struct {
	// SQL is SELECT value AS value, count(*) AS rows FROM … WHERE … [GROUP BY 1].
	SQL  string
	Args []any
	// Each is the statement of SQL before it counts and groups: SELECT value AS value FROM … WHERE …. An engine may run it instead and
	// count the values itself. Empty for a count without groups.
	Each string
	// Whole is another statement with the result of SQL, which counts all rows faster, and WholeArgs are its arguments. Empty: SQL does.
	Whole     string
	WholeArgs []any
	// Rows are the tables whose rows are counted or decide what is counted, each with its key. Whether a row counts must depend only
	// on rows of these tables with the same key. A table may occur only once in FROM; SQL must name it without its schema.
	Rows []KeyedTable
	// Tables are the other tables that SQL reads. When one of them changes, the rows are counted again.
	Tables []string
	// Parents are tables that SQL does not read, whose deletions delete counted rows by foreign keys. They matter where touched
	// rows are not followed.
	Parents []string
	// MaxGroups bounds the groups: with more, counting is not worth remembering. Zero is no bound.
	MaxGroups int
	// Only returns conditions that each row of the first table of Rows must meet to be counted; nil: there are none. They need not be
	// all of its conditions: they tell which rows need not be looked at. It is called only when a count is brought up to date.
	Only func(ctx context.Context) ([]Alternatives, error)
}

// A KeyedTable is a table with the column whose value the rows that belong together share.
type KeyedTable struct {
	Table string
	Key   string
	// View is the view by which SQL names the table, if it is one. It must have the columns of the table under the same names.
	View string
}

// Alternatives is a condition that holds when one of its parts does.
type Alternatives struct {
	Equal []Equal
	Keys  map[string]bool // the row's key is one of these
}

// Equal is the condition that a column has a value: a string, an int64 or a bool.
type Equal struct {
	Column string
	Value  any
}

// A Group is a counted value with the number of its rows.
type Group struct {
	Value any
	Rows  int64
}

// Counter is implemented by engines that know which rows each commit touched. Commits are numbered; zero is before the first.
type Counter interface {
	// Count runs the statement and returns the number of the commit whose state it has counted.
	Count(ctx context.Context, c *Counting) (groups []Group, at int64, err error)
	// Committed returns the number of the newest commit that may have been acknowledged.
	Committed() int64
	// Unchanged reports that no acknowledged commit after the one with the number at has touched the tables of c.Rows. It takes
	// no reader. False means that it is not known.
	Unchanged(c *Counting, at int64) bool
	// Difference returns what must be added to the groups as of the commit at, and the commit as of which they are right then. It
	// returns false when the engine does not know, or when counting would be cheaper.
	Difference(ctx context.Context, c *Counting, at int64) (groups []Group, now int64, known bool, err error)
}

// Words returns the words of a statement in lower case, without comments and quoted values.
func Words(sql string) []string { return sqlWords(sql) }
