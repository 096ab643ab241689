package screening

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/go-json-experiment/json"

	"kontor/modules/kit/names"
	"kontor/modules/kit/records"
	"kontor/modules/kit/types"
	"kontor/modules/kit/validate"
	"kontor/server/apierr"
	"kontor/store"
)

const (
	individual = "individual"
	business   = "business"

	maxNameLetters = 500 // of which the matcher reads all
	defaultLimit   = 10
	maxLimit       = 100

	// indexTime is how long a check waits for the first index of a node.
	indexTime = 20 * time.Second
	retryTime = 2 * time.Second
)

// CheckInput is a name, with what else is known of its bearer.
type CheckInput struct {
	Name        string   `json:"name" required:"true" maxLength:"500" example:"Sergej Lawrow" doc:"In any order of its parts and in any alphabet."`
	Type        string   `json:"type" required:"false" enum:"individual,business" doc:"Entries of the other type are left out. Default: all are compared."`
	DateOfBirth string   `json:"date_of_birth" required:"false" format:"date" example:"1950-03-21" doc:"Lowers the scores of entries with another one."`
	Country     string   `json:"country" required:"false" example:"RUS" doc:"Nationality, registration or residence: a country of ISO 3166-1 or Kosovo, with two or three letters, lowers the scores of entries with others. Other codes of three letters, such as XXA, change nothing."`
	Threshold   *float64 `json:"threshold" required:"false" minimum:"0" maximum:"1" default:"0.7" doc:"The lowest score of a match."`
	Limit       *int     `json:"limit" required:"false" minimum:"1" maximum:"100" default:"10" doc:"The most matches."`

	anyKind bool // entries of the other type are compared, too
	signals names.Signals
}

// Validate checks the members.
func (in *CheckInput) Validate(v *apierr.Fields) {
	in.Name = validate.Required(v, "name", in.Name, maxNameLetters)
	if !v.Has("name") {
		switch pieces := names.Split(in.Name); {
		case len(pieces) > names.MaxNames:
			v.Add("name", "screening.one_name")
		case !slices.ContainsFunc(pieces, func(one string) bool { return !names.Parse(one, in.kind()).Empty() }):
			v.Add("name", "screening.no_letters")
		}
	}
	if in.Type != "" {
		validate.OneOf(v, "type", in.Type, individual, business)
	}
	if born := validate.Parsed(v, "date_of_birth", in.DateOfBirth, types.ParseDate); !born.IsZero() {
		year, month, day := born.Start().Date()
		in.signals.Births = []names.Birth{{Year: year, Month: int(month), Day: day}}
	}
	in.signals.Countries = alpha3(in.Country)
	if in.Country != "" && len(in.signals.Countries) == 0 { // no country; a nationality may have another code
		if _, err := types.ParseCountry(in.Country); err != nil {
			validate.Note(v, "country", types.RuleCountry)
		}
	}
	if t := in.Threshold; t != nil && !(*t >= 0 && *t <= 1) {
		v.Add("threshold", "invalid.range", apierr.Args{"Min": 0, "Max": 1})
	}
	if l := in.Limit; l != nil && (*l < 1 || *l > maxLimit) {
		v.Add("limit", "invalid.range", apierr.Args{"Min": 1, "Max": maxLimit})
	}
}

func (in *CheckInput) kind() names.Kind {
	return map[string]names.Kind{individual: names.Person, business: names.Organisation}[in.Type]
}

// Result is the answer to a check.
type Result struct {
	Matches []Match     `json:"matches" doc:"The best first."`
	Doubt   string      `json:"doubt,omitzero" enum:"mixed_scripts,many_parts,single_letters" doc:"Why a person must look at the name: a program cannot compare it well. Missing from most answers."`
	Lists   []ListState `json:"lists" doc:"The lists that were searched. Empty: none is loaded, and nothing was compared."`
}

// ListState is a list as it was searched.
type ListState struct {
	Name    string `json:"name" example:"SECO"`
	Version string `json:"version" example:"2026-01-31"`
	Entries int64  `json:"entries" example:"4512"`
}

// Match is an entry with a name that is like the wanted one.
type Match struct {
	EntryID     string     `json:"entry_id" doc:"Stays the same when the entry changes."`
	List        string     `json:"list" example:"SECO"`
	SourceID    string     `json:"source_id" format:"-" example:"12345" doc:"The id of the entry in its file."`
	Name        string     `json:"name" example:"Sergey Viktorovich LAVROV" doc:"The name of the entry that is most alike."`
	Type        string     `json:"type" enum:"individual,business," doc:"Empty: the list does not say it, or it is an object such as a ship."`
	Score       float64    `json:"score" minimum:"0" maximum:"1" example:"0.94"`
	Programs    []string   `json:"programs" example:"Ukraine"`
	DateOfBirth *string    `json:"date_of_birth" format:"-" example:"1950-03-21" doc:"As far as the list has it: a date, 1950-03 or 1950. Of several, the one that contradicts least."`
	Countries   []string   `json:"countries" example:"RUS"`
	Matched     []Evidence `json:"matched" doc:"Which parts of the names matched."`

	state string // digest of the entry
}

// Evidence is a part of both names.
type Evidence struct {
	Query string  `json:"query" example:"Lawrow"`
	Entry string  `json:"entry" example:"LAVROV"`
	Score float64 `json:"score" minimum:"0" maximum:"1" example:"0.92"`
}

// checkRecords is the type of the audit entries of checks. The name is a changed field, which is stored sealed.
const checkRecords = "screening_checks"

// Check compares a name with all lists. It stores an audit entry with the name sealed. It returns apierr.Unavailable while the node has
// not read the lists yet.
func (s *Service) Check(ctx context.Context, in CheckInput) (Result, error) {
	result, err := s.compare(ctx, in)
	if err != nil {
		return Result{}, err
	}
	return result, s.db.InTx(ctx, func(tx *store.Tx) error {
		tx.Audit(store.AuditEntry{Actor: records.Actor(ctx), Action: "screening.check", RecType: checkRecords, RecID: store.NewID(),
			Changes: []store.FieldChange{store.Changed("name", "", in.Name)}})
		return nil
	})
}

// compare returns the matches, and the lists that were searched.
func (s *Service) compare(ctx context.Context, in CheckInput) (Result, error) {
	result := Result{Matches: []Match{}, Doubt: string(names.DoubtOf(in.Name)), Lists: []ListState{}}
	lists, err := inForce(ctx, s.db)
	if err != nil || len(lists) == 0 {
		return result, err
	}
	current, err := s.ready(ctx, lists)
	if err != nil {
		return Result{}, err
	}
	for _, l := range current.lists {
		if slices.ContainsFunc(lists, func(still List) bool { return still.ID == l.ID }) {
			result.Lists = append(result.Lists, ListState{l.Name, l.Version, l.Entries})
		}
	}
	hits, err := s.search(ctx, current, &in)
	if err != nil {
		return Result{}, err
	}
	result.Matches, err = s.matches(ctx, current, hits, &in)
	return result, err
}

// ready returns the index of this node. A node that has none yet waits for it.
func (s *Service) ready(ctx context.Context, lists []List) (*snapshot, error) {
	current := s.snapshot()
	if current.same(lists) {
		return current, nil
	}
	s.refresh()
	if current == nil {
		limited, cancel := context.WithTimeout(ctx, indexTime)
		defer cancel()
		s.await(limited)
		current = s.snapshot()
	}
	if current == nil {
		return nil, apierr.Unavailable.RetryAfter(retryTime)
	}
	return current, nil
}

// search finds the names. A bounded number of searches runs at the same time: each takes a processor.
func (s *Service) search(ctx context.Context, in *snapshot, wanted *CheckInput) ([]names.Hit, error) {
	select {
	case s.checks <- struct{}{}:
		defer func() { <-s.checks }()
	case <-ctx.Done():
		return nil, apierr.Unavailable.Wrap(ctx.Err())
	}
	kind := wanted.kind()
	if wanted.anyKind {
		kind = names.Unknown
	}
	var accepts func(entry int) bool
	if kind != names.Unknown {
		accepts = func(entry int) bool { k := in.entries[entry].kind; return k == kind || k == names.Unknown }
	}
	return in.names.Search(wanted.Name, kind, wanted.threshold(), accepts), nil
}

func (in *CheckInput) threshold() float64 {
	if in.Threshold == nil {
		return names.DefaultThreshold
	}
	return *in.Threshold
}

// matches returns the hits whose entries are still in force, with what contradicts them.
func (s *Service) matches(ctx context.Context, in *snapshot, hits []names.Hit, wanted *CheckInput) ([]Match, error) {
	found := []Match{}
	ids := make([]string, len(hits))
	for i, hit := range hits {
		ids[i] = in.entries[hit.Entry].id.String()
	}
	entries, err := entriesOf(ctx, s.db, ids)
	if err != nil {
		return nil, err
	}
	for _, hit := range hits {
		id := in.entries[hit.Entry].id.String()
		e, known := entries[id]
		if !known {
			continue
		}
		score := math.Round(hit.Score*wanted.signals.Factor(names.Signals{Births: e.Births, Countries: e.Countries})*1000) / 1000
		if score < wanted.threshold() {
			continue
		}
		m := Match{EntryID: id, List: e.list, SourceID: e.SourceID, Name: hit.Name, Type: typeOf(e.Kind), Score: score,
			Programs: orEmpty(e.Programs), DateOfBirth: bornOn(wanted.signals, e.Births), Countries: orEmpty(e.Countries), Matched: []Evidence{}, state: e.state}
		for _, part := range hit.Matches {
			m.Matched = append(m.Matched, Evidence{part.Query, part.Entry, part.Score})
		}
		found = append(found, m)
	}
	slices.SortStableFunc(found, func(a, b Match) int { return cmp.Compare(b.Score, a.Score) })
	limit := defaultLimit
	if wanted.Limit != nil {
		limit = *wanted.Limit
	}
	return found[:min(len(found), limit)], nil
}

// entry is an entry with the name of its list.
type entry struct {
	content
	list  string
	state string // digest of the content
}

const selectMatched = `
	SELECT e.id, l.name, e.content FROM screening_entries e JOIN screening_lists l ON l.id = e.list_id
	WHERE e.id IN (%s) AND e.from_load <= l.load AND (e.to_load IS NULL OR e.to_load > l.load)`

// entriesOf reads the entries with ids that are in force, by id.
func entriesOf(ctx context.Context, q store.Querier, ids []string) (map[string]entry, error) {
	found := map[string]entry{}
	err := store.EachOf(ctx, q, func(row store.Scanner) error {
		var id, text string
		var e entry
		if err := row.Scan(&id, &e.list, &text); err != nil {
			return err
		}
		if err := json.Unmarshal([]byte(text), &e.content); err != nil {
			return err
		}
		sum := sha256.Sum256([]byte(text))
		e.state = hex.EncodeToString(sum[:16])
		found[id] = e
		return nil
	}, selectMatched, ids)
	return found, err
}

func typeOf(kind names.Kind) string {
	switch kind {
	case names.Person:
		return individual
	case names.Organisation:
		return business
	}
	return ""
}

func orEmpty(texts []string) []string {
	if texts == nil {
		return []string{}
	}
	return texts
}

// bornOn returns the date of birth of an entry that contradicts least, or nil.
func bornOn(wanted names.Signals, births []names.Birth) *string {
	if len(births) == 0 {
		return nil
	}
	best := slices.MaxFunc(births, func(a, b names.Birth) int {
		x, y := wanted.Factor(names.Signals{Births: []names.Birth{a}}), wanted.Factor(names.Signals{Births: []names.Birth{b}})
		return cmp.Compare(x, y)
	})
	text := dateText(best)
	return &text
}

// dateText returns a date as far as it is known.
func dateText(b names.Birth) string {
	text := fmt.Sprintf("%04d", b.Year)
	if b.Month > 0 {
		text += fmt.Sprintf("-%02d", b.Month)
		if b.Day > 0 {
			text += fmt.Sprintf("-%02d", b.Day)
		}
	}
	return text
}
