package symbol

import (
	"fmt"
	"os"
)

func init() {
	if os.Getenv("GATE") != "" {
		debugGate = func(k string, v float64) { fmt.Fprintf(os.Stderr, "GATE %s %.2f\n", k, v) }
	}
}
