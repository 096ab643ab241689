package datadir

import "strings"

// SameFile reports whether two identities may be of one file. One that is unknown may be of any file. One may lack the time of the
// creation, because a later version of the system says it.
func SameFile(a, b string) bool {
	if a == "" || b == "" || a == b {
		return true
	}
	numberA, createdA, _ := strings.Cut(a, "-")
	numberB, createdB, _ := strings.Cut(b, "-")
	return numberA == numberB && (createdA == "" || createdB == "")
}
