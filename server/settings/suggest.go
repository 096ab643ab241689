package settings

import (
	"strings"
	"unicode/utf8"
)

// DidYouMean returns ` (did you mean "…"?)` with the known name that is closest to the wrong one, or "".
func DidYouMean(wrong string, known []string) string {
	best, distance := "", len(wrong)/3+1 // more changes make it a different word
	for _, name := range known {
		if abs(len(name)-len(wrong)) >= distance {
			continue
		}
		if d := editDistance(strings.ToLower(wrong), strings.ToLower(name)); d < distance {
			best, distance = name, d
		}
	}
	if best == "" {
		for _, name := range known { // only the last part, or other separators
			if strings.HasSuffix(name, "."+wrong) || flat(name) == flat(wrong) {
				best = name
				break
			}
		}
	}
	if best == "" {
		return ""
	}
	return ` (did you mean "` + best + `"?)`
}

func flat(name string) string {
	return strings.ToLower(strings.NewReplacer(".", "", "_", "", "-", "").Replace(name))
}

func abs(n int) int {
	if n < 0 {
		return -n
	}
	return n
}

// editDistance returns the number of inserted, removed and replaced bytes between a and b (Levenshtein).
func editDistance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			change := diagonal
			if a[i] != b[j] {
				change++
			}
			diagonal = row[j+1]
			row[j+1] = min(change, row[j]+1, diagonal+1)
		}
	}
	return row[len(b)]
}

const maxShown = 80 // characters of a wrong value in an error

func shorten(s string) string {
	if utf8.RuneCountInString(s) <= maxShown {
		return s
	}
	return string([]rune(s)[:maxShown]) + "…"
}
