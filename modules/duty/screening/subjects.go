package screening

import (
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
	s.name = strings.TrimPrefix(s.name, types.NoFirstName+" ")
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

// inputs returns what to search for. Each name is compared with people and with organisations: the type is what a customer says.
func (s subject) inputs(threshold float64) []CheckInput {
	limit := maxLimit
	in := CheckInput{Threshold: &threshold, Limit: &limit, anyKind: true, signals: names.Signals{Countries: s.countries}}
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

// noEntry is the entry of a hit that a doubt about a name has opened.
const noEntry = store.NilID

// found is an entry that a record matches, or the doubt about its name.
type found struct {
	Match

	query CheckInput
	cause names.Doubt
}

// match returns the entries that a record matches, each once with its best score, and what a person must look at.
func (s *Service) match(ctx context.Context, in *snapshot, of subject) (map[string]found, error) {
	best := map[string]found{}
	for _, query := range of.inputs(s.threshold()) {
		if doubt := names.DoubtOf(query.Name); doubt != "" {
			best[noEntry] = found{Match{EntryID: noEntry}, query, doubt}
		}
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
				best[m.EntryID] = found{m, query, ""}
			}
		}
	}
	return best, nil
}

// evidenceOf returns what was compared.
func (of subject) evidenceOf(f found) evidence {
	return evidence{Matched: f.Matched, Subject: Subject{Name: f.query.Name, Type: f.query.Type, DateOfBirth: of.birth, Countries: orEmpty(of.countries)}}
}

// fill copies what was compared to a hit.
func (h *storedHit) fill(of subject, f found) error {
	kept, err := encode(of.evidenceOf(f))
	if err != nil {
		return err
	}
	h.Score, h.List, h.EntryID, h.SourceID, h.EntryName, h.entryState = f.Score, f.List, f.EntryID, f.SourceID, f.Name, f.state
	h.SubjectType, h.SubjectID, h.SubjectName, h.subjectState, h.evidence = of.source.subject, of.id, f.query.Name, of.state, kept
	h.Cause, h.later = string(f.cause), ""
	if of.customerID != "" {
		h.CustomerID = &of.customerID
	}
	return nil
}

func encode(value any) (string, error) {
	text, err := json.Marshal(value, json.Deterministic(true))
	if err != nil {
		return "", fmt.Errorf("encode the evidence of a hit: %w", err)
	}
	return string(text), nil
}
