// Package similar finds the name that a wrong one was probably meant to be.
package similar

// Closest returns the known name that differs least from a wrong one, or "" if each differs in more than a third of the wrong one.
// Names are compared in the form that plain returns, such as lower case.
func Closest(wrong string, known []string, plain func(string) string) string {
	wrong = plain(wrong)
	best, least := "", len(wrong)/3+1
	for _, name := range known {
		if distance := editDistance(wrong, plain(name)); distance < least {
			best, least = name, distance
		}
	}
	return best
}

// editDistance returns the number of bytes to insert, delete or replace to make a text from another (Levenshtein).
func editDistance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		before := row[0]
		row[0] = i + 1
		for j := range len(b) {
			replaced := before
			if a[i] != b[j] {
				replaced++
			}
			before = row[j+1]
			row[j+1] = min(replaced, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
