package settings

import (
	"strings"
	"unicode/utf8"

	"kontor/server/similar"
)

// DidYouMean returns ` (did you mean "…"?)` with the known name that is closest to the wrong one, or "".
func DidYouMean(wrong string, known []string) string {
	best := similar.Closest(wrong, known, strings.ToLower)
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

const maxShown = 80 // characters of a wrong value in an error

func shorten(s string) string {
	if utf8.RuneCountInString(s) <= maxShown {
		return s
	}
	return string([]rune(s)[:maxShown]) + "…"
}
