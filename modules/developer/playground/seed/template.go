package seed

import (
	"regexp"
	"strconv"
	"strings"
	"time"
)

// text is a text with references.
type text struct {
	source string
	parts  []part
}

// part is a literal text, or a reference.
type part struct {
	literal string
	ref     *reference
}

// reference is what stands between ${ and }: a member of an earlier answer (anna.id), a value of the file, the number of the run, or a
// time (today, now) with a difference.
type reference struct {
	source string
	root   string
	path   []string
	shift  time.Duration
	days   int
}

// The references that name no step.
const (
	today = "today" // the date, in UTC
	now   = "now"   // the time
	run   = "run"   // how many files and scenarios were played in this bank, with this one
)

var (
	refPattern   = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_-]*(\.[A-Za-z0-9_-]+)*$`)
	shiftPattern = regexp.MustCompile(`^(today|now)\s*(?:([+-])\s*([0-9]{1,6})\s*([dhms]))?$`)
	stepID       = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_-]{0,63}$`)
)

// parseText finds the references of a text. "$${" stands for "${". bad is a reference that is malformed.
func parseText(source string) (t text, bad string, ok bool) {
	t.source = source
	for rest := source; rest != ""; {
		at := strings.Index(rest, "${")
		if at < 0 {
			t.parts = append(t.parts, part{literal: rest})
			break
		}
		if at > 0 && rest[at-1] == '$' {
			t.parts = append(t.parts, part{literal: rest[:at-1] + "${"})
			rest = rest[at+2:]
			continue
		}
		if at > 0 {
			t.parts = append(t.parts, part{literal: rest[:at]})
		}
		end := strings.IndexByte(rest[at:], '}')
		if end < 0 {
			return t, rest[at:], false
		}
		inside := rest[at+2 : at+end]
		ref := parseReference(strings.TrimSpace(inside))
		if ref == nil {
			return t, rest[at : at+end+1], false
		}
		t.parts = append(t.parts, part{ref: ref})
		rest = rest[at+end+1:]
	}
	return t, "", true
}

func parseReference(inside string) *reference {
	r := &reference{source: "${" + inside + "}"}
	if found := shiftPattern.FindStringSubmatch(inside); found != nil {
		r.root = found[1]
		n, _ := strconv.Atoi(found[2] + found[3]) // the pattern admits nothing else; without a difference it is 0
		switch found[4] {
		case "d":
			r.days = n
		case "h":
			r.shift = time.Duration(n) * time.Hour
		case "m":
			r.shift = time.Duration(n) * time.Minute
		case "s":
			r.shift = time.Duration(n) * time.Second
		}
		return r
	}
	if !refPattern.MatchString(inside) {
		return nil
	}
	names := strings.Split(inside, ".")
	r.root, r.path = names[0], names[1:]
	return r
}

// at returns the time that a reference to today or now names.
func (r *reference) at(present time.Time) string {
	present = present.UTC().AddDate(0, 0, r.days).Add(r.shift)
	if r.root == today {
		return present.Format(time.DateOnly)
	}
	return present.Format("2006-01-02T15:04:05.000Z")
}

// name returns the reference without its braces.
func (r *reference) name() string { return strings.Join(append([]string{r.root}, r.path...), ".") }

// references returns those of a text.
func (t text) references() (all []*reference) {
	for _, p := range t.parts {
		if p.ref != nil {
			all = append(all, p.ref)
		}
	}
	return all
}

// single returns the reference that is the whole text, which keeps the type of its value.
func (t text) single() *reference {
	if len(t.parts) == 1 {
		return t.parts[0].ref
	}
	return nil
}
