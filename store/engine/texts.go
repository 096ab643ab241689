package engine

// A TextIndex is a table whose texts an engine indexes word by word. The texts hold words in lower case, separated by blanks. The
// index is derived from the table: an engine creates a missing one, and keeps it current within the transactions that write
// to the table. Words that a statement removes from the table must not stay in the index, not even in unused bytes.
type TextIndex struct {
	Table   string
	Number  string   // the column with the primary key, an integer
	Columns []string // the columns with texts; a row is found by the words of all of them
	// Progress is a table whose rows are deleted, with those of Table, when the index was missing: the table is filled again.
	Progress string
}

// A TextQuery selects the rows in which all words of one of the alternatives occur.
type TextQuery []TextWords

// TextWords are words that must occur in one row, in any order. They consist of letters, digits and marks. With Prefix the last
// one may be the beginning of a word.
type TextWords struct {
	Words  []string
	Prefix bool
}

// TextSearch is how the statements of an engine search a TextIndex.
type TextSearch struct {
	// Matching is a SELECT of the numbers of the matching rows, and Some one of at most $2 of them. $1 is the text of Expression.
	Matching, Some string
	// Expression returns the form of a query, which is not empty.
	Expression func(TextQuery) string
}
