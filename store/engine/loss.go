package engine

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"kontor/store/clock"
)

// Loss says which acknowledged writes a database lacks.
type Loss struct {
	File    string // that is missing, damaged or older than it was
	Reason  string
	Commits int64      // that are missing; 0 when that is unknown
	Entries int64      // of the audit trail that are missing
	Since   clock.Time // of the newest entry that is present; 0 when there is none
	Until   clock.Time // of the newest commit that was acknowledged; 0 when that is unknown
	Advice  string     `json:"-"` // what to do about it; empty: restore the files
}

// Error says what is missing and what to do.
func (l *Loss) Error() string {
	return l.Summary() + "; " + cmp.Or(l.Advice, "put the files back or restore a backup") + ", or continue without these writes: kontor serve --accept-loss"
}

// Summary says what is missing.
func (l *Loss) Summary() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s", l.File, l.Reason)
	switch {
	case l.Commits > 0 && l.Entries == 0:
		fmt.Fprintf(&b, ": %d commits are missing that were acknowledged", l.Commits)
	case l.Commits > 0 || l.Entries > 0:
		fmt.Fprintf(&b, ": %d commits with %d audit entries are missing that were acknowledged", l.Commits, l.Entries)
	default:
		b.WriteString(": writes that were acknowledged may be missing")
	}
	if l.Since > 0 {
		fmt.Fprintf(&b, " after %s", l.Since.Std().UTC().Format(time.RFC3339))
	}
	if l.Until > 0 {
		fmt.Fprintf(&b, ", up to %s", l.Until.Std().UTC().Format(time.RFC3339))
	}
	return b.String()
}

// Unwrap makes a Loss an ErrLoss.
func (l *Loss) Unwrap() error { return ErrLoss }
