package endpoint

// PageBytes bounds the JSON of one page of a list or an array. A page ends before the row that would exceed it, but has at
// least one row; has_more or the header Link reports further rows.
const PageBytes = 1 << 20

// JSONSize returns the size of a text as a JSON string, with its quotation marks, in bytes.
func JSONSize(text string) int {
	size := len(text) + 2
	for i := range len(text) {
		switch c := text[i]; {
		case c == '"' || c == '\\' || c == '\n' || c == '\t' || c == '\r' || c == '\b' || c == '\f':
			size++
		case c < ' ':
			size += len(`\u0000`) - 1
		}
	}
	return size
}
