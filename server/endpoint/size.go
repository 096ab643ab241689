package endpoint

// PageBytes is how much JSON an array or a list answers with. A page ends before the row that would exceed it, but has at
// least one row; has_more or the header Link says that there is more.
const PageBytes = 1 << 20

// JSONSize is how many bytes a text takes as a JSON string, with its quotation marks.
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
