package screening

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/go-json-experiment/json"

	"kontor/modules/kit/hit"
	"kontor/store"
)

// change is what a comparison changes.
type change struct {
	before *storedHit // nil: the hit is new
	after  storedHit
	action string
}

// later is the comparison of an entry with an identity that has changed since the hit was opened. It does not replace the one of the hit:
// the people who are on a list can change what they write about themselves.
type later struct {
	Comparison

	State      string `json:"state"`       // of the identity
	EntryState string `json:"entry_state"` // empty if the names are not alike
	Proposed   bool   `json:"proposed"`    // the pending decision covers it
}

// compared is what a comparison of a record has found.
type compared struct {
	of      *subject // nil: the record is not compared any more
	matches map[string]found
	states  map[string]string // of the entries that are still listed
	now     store.Time
}

// changes returns what changes. A list can close hits: an entry is removed, or gets other names. The subject cannot. While their identity is
// another one than that of a hit, the hit stays as it is, and the new comparison stands beside it. A dismissal holds until the entry
// changes, or until another identity matches. A confirmed hit stays until people decide otherwise.
func (c compared) changes(existing []storedHit) (all []change, err error) {
	known := map[string]bool{}
	for i := range existing {
		known[existing[i].EntryID] = true
		after, action, err := c.change(existing[i])
		if err != nil {
			return nil, err
		}
		if action != "" {
			all = append(all, change{&existing[i], after, action})
		}
	}
	fresh := make([]found, 0, len(c.matches))
	for id, f := range c.matches {
		if !known[id] {
			fresh = append(fresh, f)
		}
	}
	slices.SortFunc(fresh, func(a, b found) int {
		return cmp.Or(cmp.Compare(b.cause, a.cause), cmp.Compare(b.Score, a.Score), cmp.Compare(a.EntryID, b.EntryID))
	})
	for _, f := range fresh[:min(len(fresh), newHits)] {
		opened := change{action: hitOpened, after: storedHit{settled: hit.Open, Hit: hit.Hit{ID: store.NewID(), Status: hit.Open}}}
		if err := opened.after.fill(*c.of, f); err != nil {
			return nil, err
		}
		all = append(all, opened)
	}
	return all, nil
}

// change returns a hit after the comparison, and what has happened to it; empty if nothing has.
func (c compared) change(h storedHit) (storedHit, string, error) {
	f, matched := c.matches[h.EntryID]
	state, listed := c.states[h.EntryID]
	switch {
	case !listed && h.EntryID != noEntry:
		return h.unlisted()
	case c.of == nil:
		return h, "", nil
	case h.Status == hit.Closed || h.Status == hit.Dismissed:
		return c.ended(h, f, matched, state)
	case h.subjectState != c.of.state:
		return c.beside(h, f)
	case h.entryState == state && (matched || h.settled == hit.Confirmed || h.EntryID == noEntry):
		if h.later == "" {
			return h, "", nil
		}
		h.later = "" // the identity is that of the hit again
		return h, hitChanged, nil
	case matched: // the entry has changed
		if h.Status == hit.Pending { // the proposal is about the former one
			h.takeBack()
		}
		return h, hitChanged, h.fill(*c.of, f)
	default:
		return h.unlisted()
	}
}

// ended is change for a hit that is closed or dismissed.
func (c compared) ended(h storedHit, f found, matched bool, state string) (storedHit, string, error) {
	same := h.subjectState == c.of.state && h.entryState == state
	if !matched || same && h.Status == hit.Dismissed {
		return h, "", nil
	}
	h.reopen()
	return h, hitReopened, h.fill(*c.of, f)
}

// unlisted closes a hit whose entry is removed or has other names. A confirmed one stays.
func (h storedHit) unlisted() (storedHit, string, error) {
	if h.Status == hit.Closed || h.settled == hit.Confirmed {
		return h, "", nil
	}
	h.clearDecision()
	h.Status, h.settled, h.later = hit.Closed, hit.Closed, ""
	return h, hitClosed, nil
}

// beside puts the comparison with the present identity beside the one of the hit.
func (c compared) beside(h storedHit, f found) (storedHit, string, error) {
	if was, err := h.laterOne(); err != nil || was != nil && was.State == c.of.state && was.EntryState == f.state {
		return h, "", err
	}
	e := c.of.evidenceOf(f)
	if f.query.Name == "" {
		e.Subject.Name = cmp.Or(c.of.name, c.of.company)
	}
	text, err := encode(later{Comparison{e.Subject, f.Score, orNone(e.Matched), c.now}, c.of.state, f.state, false})
	h.later = text
	return h, hitChanged, err
}

// laterOne returns the comparison with the present identity, or nil.
func (h storedHit) laterOne() (*later, error) {
	if h.later == "" {
		return nil, nil //nolint:nilnil // none
	}
	var l later
	if err := json.Unmarshal([]byte(h.later), &l); err != nil {
		return nil, fmt.Errorf("decode the later comparison of hit %s: %w", h.ID, err)
	}
	return &l, nil
}

// adopt makes the comparison with the present identity that of the hit.
func (h *storedHit) adopt(l *later) error {
	kept, err := encode(evidence{l.Subject, l.Matched})
	h.Score, h.SubjectName, h.subjectState, h.entryState, h.evidence, h.later = l.Score, l.Subject.Name, l.State, l.EntryState, kept, ""
	return err
}

func orNone(matched []Evidence) []Evidence {
	if matched == nil {
		return []Evidence{}
	}
	return matched
}
