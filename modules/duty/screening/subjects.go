package screening

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"

	"kontor/modules/kit/hit"
	"kontor/modules/kit/names"
	"kontor/modules/kit/types"
	"kontor/store"
)

// source is a type of records that are compared with the lists.
type source struct {
	subject string // as hits name it
	recType string // in the audit trail
	after   string // a statement that selects the next records after an id
	of      string // a statement that selects records by their ids
}

// sources are in the order in which all records are compared.
var sources = []source{
	{hit.Customer, "customers", `SELECT ` + subjectColumns + ` FROM customer_subjects ` + nextSubjects, `SELECT ` + subjectColumns + ` FROM customer_subjects ` + theseSubjects},
	{hit.Persona, "personas", `SELECT ` + subjectColumns + ` FROM persona_subjects ` + nextSubjects, `SELECT ` + subjectColumns + ` FROM persona_subjects ` + theseSubjects},
	{hit.Payer, "payers", `SELECT ` + subjectColumns + ` FROM payer_subjects ` + nextSubjects, `SELECT ` + subjectColumns + ` FROM payer_subjects ` + theseSubjects},
}

const (
	subjectColumns = `id, customer_id, name, company, birth, nationality, country`
	nextSubjects   = `WHERE id > $1 ORDER BY id LIMIT $2`
	theseSubjects  = `WHERE id IN (%s)`
)

// subject is a record to compare.
type subject struct {
	source         source
	id, customerID string
	name, company  string
	birth          string
	countries      []string // alpha-3, sorted
	state          string   // digest of the above
}

func (of source) scan(row store.Scanner) (subject, error) {
	s := subject{source: of}
	var nationality, country string
	err := row.Scan(&s.id, &s.customerID, &s.name, &s.company, &s.birth, &nationality, &country)
	s.countries = alpha3(nationality, country)
	slices.Sort(s.countries)
	s.countries = slices.Compact(s.countries)
	sum := sha256.Sum256([]byte(strings.Join(append([]string{s.name, s.company, s.birth}, s.countries...), "\x00")))
	s.state = hex.EncodeToString(sum[:16])
	return s, err
}

// next returns the next records after an id.
func (of source) next(ctx context.Context, q store.Querier, id string) ([]subject, error) {
	return store.All(ctx, q, of.scan, of.after, id, subjectsAtOnce)
}

// read returns the records with ids. Erased ones, and others that are not compared any more, are missing.
func (of source) read(ctx context.Context, q store.Querier, ids []string) ([]subject, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	return store.All(ctx, q, of.scan, fmt.Sprintf(of.of, store.In(1, len(ids))), store.AppendIn(nil, ids)...)
}

// inputs returns what to search for: a person, an organisation or both. The only name of a payer may be either.
func (s subject) inputs(threshold float64) []CheckInput {
	limit := maxLimit
	in := CheckInput{Threshold: &threshold, Limit: &limit, signals: names.Signals{Countries: s.countries}}
	var all []CheckInput
	if s.company != "" {
		one := in
		one.Name, one.Type = s.company, business
		all = append(all, one)
	}
	if s.name != "" {
		one := in
		one.Name = s.name
		if s.source.subject != hit.Payer || s.company != "" {
			one.Type = individual
		}
		if born, err := types.ParseDate(s.birth); err == nil && !born.IsZero() {
			year, month, day := born.Start().Date()
			one.signals.Births = []names.Birth{{Year: year, Month: int(month), Day: day}}
		}
		all = append(all, one)
	}
	return all
}

// found is an entry that a record matches.
type found struct {
	Match

	query CheckInput
}

// match returns the entries that a record matches, each once with its best score.
func (s *Service) match(ctx context.Context, in *snapshot, of subject) (map[string]found, error) {
	best := map[string]found{}
	for _, query := range of.inputs(s.threshold()) {
		hits, err := s.search(ctx, in, &query)
		if err != nil {
			return nil, err
		}
		matches, err := s.matches(ctx, in, hits, &query)
		if err != nil {
			return nil, err
		}
		for _, m := range matches {
			if was, known := best[m.EntryID]; !known || was.Score < m.Score {
				best[m.EntryID] = found{m, query}
			}
		}
	}
	return best, nil
}

// fill copies what was compared to a hit.
func (h *storedHit) fill(of subject, f found) error {
	kept, err := json.Marshal(evidence{Matched: f.Matched, Subject: Subject{Name: f.query.Name, Type: f.query.Type, DateOfBirth: of.birth, Countries: orEmpty(of.countries)}},
		json.Deterministic(true))
	if err != nil {
		return fmt.Errorf("encode the evidence of a hit: %w", err)
	}
	h.Score, h.List, h.EntryID, h.SourceID, h.EntryName, h.entryState = f.Score, f.List, f.EntryID, f.SourceID, f.Name, f.state
	h.SubjectType, h.SubjectID, h.SubjectName, h.subjectState, h.evidence = of.source.subject, of.id, f.query.Name, of.state, string(kept)
	if of.customerID != "" {
		h.CustomerID = &of.customerID
	}
	return nil
}

// change is what a comparison changes.
type change struct {
	before *storedHit // nil: the hit is new
	after  storedHit
	action string
}

// compare returns what changes with the entries that a record matches now. A dismissal holds until the entry or the identity changes.
// A confirmed hit stays until people decide otherwise. of is nil for a record that is not compared any more. states are those of the
// entries that are still listed.
func compare(of *subject, matches map[string]found, existing []storedHit, states map[string]string) (changes []change, err error) {
	known := map[string]bool{}
	for i := range existing {
		h := existing[i]
		known[h.EntryID] = true
		f, matched := matches[h.EntryID]
		same := of != nil && h.subjectState == of.state && h.entryState == states[h.EntryID]
		c := change{before: &existing[i], after: h}
		switch {
		case matched && same && h.Status != hit.Closed, h.Status == hit.Closed && !matched:
			continue
		case matched && (h.Status == hit.Closed || h.Status == hit.Dismissed):
			c.after.reopen()
			c.action = hitReopened
		case matched:
			if h.Status == hit.Pending { // what was proposed is about other data
				c.after.takeBack()
			}
			if c.after.Status == hit.Dismissed {
				c.after.reopen()
			}
			c.action = hitChanged
		case h.settled == hit.Confirmed, h.Status == hit.Dismissed && same:
			continue
		default:
			c.after.clearDecision()
			c.after.Status, c.after.settled, c.action = hit.Closed, hit.Closed, hitClosed
		}
		if matched {
			if err := c.after.fill(*of, f); err != nil {
				return nil, err
			}
		}
		changes = append(changes, c)
	}
	fresh := make([]found, 0, len(matches))
	for id, f := range matches {
		if !known[id] {
			fresh = append(fresh, f)
		}
	}
	slices.SortFunc(fresh, func(a, b found) int { return cmp.Or(cmp.Compare(b.Score, a.Score), cmp.Compare(a.EntryID, b.EntryID)) })
	for _, f := range fresh[:min(len(fresh), newHits)] {
		c := change{action: hitOpened, after: storedHit{settled: hit.Open, Hit: hit.Hit{ID: store.NewID(), Status: hit.Open}}}
		if err := c.after.fill(*of, f); err != nil {
			return nil, err
		}
		changes = append(changes, c)
	}
	return changes, nil
}
