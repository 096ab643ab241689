package continuous

import (
	"fmt"
	"io"
)

// Print prints the lines of a target, with their gaps and forks. Without a key it does not say whose lines they are.
func (s *Survey) Print(out io.Writer, withKey bool) error {
	p := printer{out: out}
	for _, l := range s.Lines {
		p.line(s, l, withKey)
	}
	return p.err
}

type printer struct {
	out io.Writer
	err error
}

func (p *printer) print(format string, args ...any) {
	if p.err == nil {
		_, p.err = fmt.Fprintf(p.out, format+"\n", args...)
	}
}

func (p *printer) line(s *Survey, l *Line, withKey bool) {
	kind := "line"
	if l.Old {
		kind = "old chain"
	}
	owner := ""
	if withKey && !l.Ours {
		owner = " (foreign: of another bank, or of another master key)"
	} else if withKey {
		owner = s.fork(l)
	}
	if len(l.parts) == 0 {
		p.print("%s %s: no parts%s", kind, l.ID, owner)
	} else if from, to := l.From(), l.Top(); l.Old {
		p.print("%s %s: %s to %s, %d parts, %.1f MB%s", kind, l.ID, from.At, to.At, l.Parts(), megabytes(l), owner)
	} else {
		p.print("%s %s: commits %d to %d, %s to %s, %d parts in %d chains, %.1f MB%s", kind, l.ID, from.Commits, to.Commits, from.At, to.At,
			l.Parts(), len(l.chains()), megabytes(l), owner)
	}
	for _, text := range l.problems() {
		p.print("  %s", text)
	}
	if l.status != nil && l.status.ContinuedBy != "" {
		p.print("  %s continues the line, as backup.line says", l.status.ContinuedBy)
	}
	if l.status != nil && l.status.Displaced {
		p.print("  fork: the line began because another server wrote to the line before")
	}
}

func megabytes(l *Line) float64 { return float64(l.Bytes()) / 1e6 }
