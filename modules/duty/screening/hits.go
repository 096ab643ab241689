package screening

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/go-json-experiment/json"

	"kontor/modules/kit/hit"
	"kontor/modules/kit/list"
	"kontor/modules/kit/records"
	"kontor/modules/kit/types"
	"kontor/server/access"
	"kontor/server/apierr"
	"kontor/server/endpoint"
	"kontor/store"
)

// Reviews decides who may review, for hits as for verifications. The application joins customers and personas.
type Reviews interface {
	// Own returns the customers and personas that are, or were, the caller.
	Own(ctx context.Context, q store.Querier) (customers, personas records.Selection, err error)
	// CheckOther returns apierr.SelfVerification or apierr.OwnPersona for a caller who is, or was, the subject of a hit.
	CheckOther(ctx context.Context, q store.Querier, h hit.Hit) error
	// CheckSecondPerson returns apierr.SecondPersonRequired or apierr.SelfVerification for a caller who does not count as another person
	// than the proposer of a decision.
	CheckSecondPerson(ctx context.Context, q store.Querier, h hit.Hit, proposer string) error
	// IsSubject reports whether a reviewer is, or was, the subject of a hit.
	IsSubject(ctx context.Context, q store.Querier, h hit.Hit, userID string) (bool, error)
}

// storedHit is a hit as it is stored.
type storedHit struct {
	hit.Hit

	settled      hit.Status // without the pending decision
	entryState   string
	subjectState string
	evidence     string
	later        string // see later
}

// evidence is what was compared, as a hit keeps it. The entry may change later, or vanish.
type evidence struct {
	Subject Subject    `json:"subject"`
	Matched []Evidence `json:"matched"`
}

// Subject is a record as it was compared.
type Subject struct {
	Name        string   `json:"name" doc:"The name that matched."`
	Type        string   `json:"type" enum:"individual,business," doc:"Empty: unknown."`
	DateOfBirth string   `json:"date_of_birth" format:"-" example:"1950-03-21" doc:"Empty: unknown."`
	Countries   []string `json:"countries" example:"RUS" doc:"Nationality and country of the address, as alpha-3 codes."`
}

// ListedEntry is an entry as the list has it now.
type ListedEntry struct {
	Names        []string `json:"names" example:"Sergey Viktorovich LAVROV"`
	Type         string   `json:"type" enum:"individual,business,"`
	Programs     []string `json:"programs" example:"Ukraine"`
	DatesOfBirth []string `json:"dates_of_birth" format:"-" example:"1950-03-21"`
	Countries    []string `json:"countries" example:"RUS"`
}

// HitChange is an entry of the history of a hit.
type HitChange struct {
	Action    string     `json:"action" enum:"opened,changed,reopened,closed,proposed,withdrawn,decided,escalated"`
	Status    hit.Status `json:"status" doc:"After the change."`
	Decision  string     `json:"decision" enum:"dismissed,confirmed,"`
	Reason    string     `json:"reason"`
	ChangedAt store.Time `json:"changed_at"`
	ChangedBy string     `json:"changed_by" doc:"The nil id stands for the comparison with the lists."`
}

// Comparison is a comparison of an entry with an identity.
type Comparison struct {
	Subject    Subject    `json:"subject"`
	Score      float64    `json:"score" minimum:"0" maximum:"1" example:"0.94" doc:"0: the names are not alike."`
	Matched    []Evidence `json:"matched" doc:"Which parts of the names matched."`
	ComparedAt store.Time `json:"compared_at"`
}

// HitDetails is a hit with both sides, the evidence and the history.
type HitDetails struct {
	hit.Hit
	Subject Subject      `json:"subject" doc:"The record as it was compared."`
	Entry   *ListedEntry `json:"entry" doc:"As the list has it now; null if it is not listed any more."`
	Matched []Evidence   `json:"matched" doc:"Which parts of the names matched: query is the part of the record."`
	Later   *Comparison  `json:"later" doc:"The comparison with the present identity, if it has changed since the hit was opened; otherwise null."`
	History []HitChange  `json:"history" doc:"Newest first."`
}

// EachUser names the reviewers of the hit and of its history.
func (d HitDetails) EachUser(add func(id string)) {
	d.Hit.EachUser(add)
	for _, c := range d.History {
		if c.ChangedBy != store.NilID {
			add(c.ChangedBy)
		}
	}
}

const (
	hitsTable = "screening_hits"

	hitColumns = `id, status, score, list, entry_id, source_id, entry_name, subject_type, subject_id, subject_name, customer_id, created_at, updated_at,
		decision, reason, proposed_at, proposed_by, decided_at, decided_by, version, settled, entry_state, subject_state, evidence, cause, later, escalation`

	selectHit        = `SELECT ` + hitColumns + ` FROM screening_hits WHERE id = $1`
	selectOfCustomer = `SELECT ` + hitColumns + ` FROM screening_hits WHERE customer_id = $1 ORDER BY id DESC LIMIT 100`
	selectOfSubjects = `SELECT ` + hitColumns + ` FROM screening_hits WHERE subject_type = $1 AND subject_id IN (%s)`
	selectHits       = `SELECT ` + hitColumns + ` FROM screening_hits WHERE id IN (%s)`
	selectBlocking   = `SELECT id FROM screening_hits WHERE customer_id = $1 AND status IN ('open', 'pending', 'confirmed') ORDER BY id LIMIT 100`
	countBlocking    = `SELECT customer_id, COUNT(*) FROM screening_hits WHERE customer_id IN (%s) AND status IN ('open', 'pending', 'confirmed') GROUP BY customer_id`
	selectHitHistory = `SELECT action, status, decision, reason, changed_at, changed_by FROM screening_hit_changes WHERE hit_id = $1 ORDER BY id DESC LIMIT 100`
	insertHit        = `INSERT INTO screening_hits (` + hitColumns + `, list_key, entry_name_key, subject_name_key) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, $22, $23, $24, $25, $26, $27, $28, $29, $30)`
	insertHitChange  = `INSERT INTO screening_hit_changes (id, hit_id, action, status, decision, reason, changed_at, changed_by) VALUES ($1, $2, $3, $4, $5, $6, $7, $8)`
	updateHit        = `
		UPDATE screening_hits SET status = $2, score = $3, source_id = $4, entry_name = $5, subject_name = $6, updated_at = $7, decision = $8, reason = $9,
			proposed_at = $10, proposed_by = $11, decided_at = $12, decided_by = $13, version = $14, settled = $15, entry_state = $16, subject_state = $17,
			evidence = $18, entry_name_key = $19, subject_name_key = $20, cause = $21, later = $22, escalation = $23
		WHERE id = $1`
)

// scanHit is a scanner of lists, too.
func scanHit(row store.Scanner) (h storedHit, err error) {
	var score string
	err = row.Scan(&h.ID, (*string)(&h.Status), &score, &h.List, &h.EntryID, &h.SourceID, &h.EntryName, &h.SubjectType, &h.SubjectID, &h.SubjectName, &h.CustomerID,
		&h.CreatedAt, &h.UpdatedAt, &h.Decision, &h.Reason, &h.ProposedAt, &h.ProposedBy, &h.DecidedAt, &h.DecidedBy, &h.Version,
		(*string)(&h.settled), &h.entryState, &h.subjectState, &h.evidence, &h.Cause, &h.later, &h.Escalation)
	if err == nil {
		h.Score, err = strconv.ParseFloat(score, 64)
	}
	return h, err
}

func scoreText(score float64) string { return strconv.FormatFloat(score, 'f', 3, 64) }

func scanShown(row list.Row) (hit.Hit, error) {
	h, err := scanHit(row)
	return h.Hit, err
}

var listOfHits = list.New(list.Source[hit.Hit]{
	From: hitsTable, Columns: hitColumns, ID: "id", Created: "created_at", Tables: []string{hitsTable}, Scan: scanShown,
	Fields: list.Fields{
		{Name: "id", Type: list.UUID, Column: "id"},
		{Name: "status", Type: list.Text, Column: "status", Key: "status", Index: list.ThenCreated, Few: true},
		{Name: "score", Type: list.Decimal, Column: "score"},
		{Name: "list", Type: list.Text, Column: "list", Key: "list_key"},
		{Name: "entry_id", Type: list.UUID, Column: "entry_id"},
		{Name: "source_id", Type: list.Text, Column: "source_id"},
		{Name: "entry_name", Type: list.Text, Column: "entry_name", Key: "entry_name_key"},
		{Name: "subject_type", Type: list.Text, Column: "subject_type", Key: "subject_type"},
		{Name: "subject_id", Type: list.UUID, Column: "subject_id"},
		{Name: "subject_name", Type: list.Text, Column: "subject_name", Key: "subject_name_key"},
		{Name: "cause", Type: list.Text, Column: "cause", Key: "cause"},
		{Name: "escalation", Type: list.Text, Column: "escalation", Key: "escalation"},
		{Name: "customer_id", Type: list.UUID, Column: "customer_id", Null: true},
		{Name: "created_at", Type: list.Time, Column: "created_at"},
		{Name: "updated_at", Type: list.Time, Column: "updated_at"},
		{Name: "decision", Type: list.Text, Column: "decision", Key: "decision"},
		{Name: "proposed_by", Type: list.UUID, Column: "proposed_by", Null: true},
		{Name: "decided_at", Type: list.Time, Column: "decided_at", Null: true},
		{Name: "decided_by", Type: list.UUID, Column: "decided_by", Null: true},
	},
})

// mayReview reports whether the caller may decide about customers, as the module customers does.
func mayReview(caller *access.Caller) bool { return caller.May(access.Customers, access.Update) }

// subjectTypes are the types of subjects with the types of their records.
var subjectTypes = []struct {
	name string
	of   access.RecordType
}{{hit.Customer, access.Customers}, {hit.Persona, access.Personas}, {hit.Payer, access.Payers}}

// readable returns the types of subjects whose records the caller may read, all of them.
func readable(caller *access.Caller, wanted access.Permission) (all []string) {
	for _, t := range subjectTypes {
		if mayReview(caller) && caller.May(t.of, wanted) {
			all = append(all, t.name)
		}
	}
	return all
}

// Hits returns a page of the hits, for reviewers, without those about the caller. It returns apierr.NoAccess for other callers.
func (s *Service) Hits(ctx context.Context, in list.Input) (list.Page[hit.Hit], error) {
	kinds := readable(access.From(ctx), access.ReadAll)
	if len(kinds) == 0 {
		return list.Page[hit.Hit]{}, apierr.NoAccess
	}
	customers, personas, err := s.Reviews.Own(ctx, s.db)
	if err != nil {
		return list.Page[hit.Hit]{}, err
	}
	return listOfHits.Page(ctx, s.db, in.Query,
		list.Where{SQL: "subject_type IN (" + store.In(1, len(kinds)) + ")", Args: store.AppendIn(nil, kinds)},
		list.Where{SQL: "(customer_id IS NULL OR customer_id NOT IN (" + customers.SQL + "))", Args: customers.Args, Tables: customers.Tables},
		list.Where{SQL: "(subject_type <> 'persona' OR subject_id NOT IN (" + personas.SQL + "))", Args: personas.Args, Tables: personas.Tables})
}

// visible reads a hit for a reviewer. It returns apierr.NoAccess for other callers, whether the hit exists or not, and
// apierr.ScreeningHitNotFound also for a hit about the caller: they must not learn of it.
func (s *Service) visible(ctx context.Context, q store.Querier, id string) (storedHit, error) {
	kinds := readable(access.From(ctx), access.Read)
	if len(kinds) == 0 {
		return storedHit{}, apierr.NoAccess
	}
	h, err := scanHit(q.QueryRow(ctx, selectHit, id))
	if errors.Is(err, store.ErrNotFound) || err == nil && !slices.Contains(kinds, h.SubjectType) {
		return h, apierr.ScreeningHitNotFound
	}
	if err == nil {
		err = s.Reviews.CheckOther(ctx, q, h.Hit)
	}
	if errors.Is(err, apierr.SelfVerification) || errors.Is(err, apierr.OwnPersona) {
		err = apierr.ScreeningHitNotFound
	}
	return h, err
}

// Hit returns a hit with both sides, the evidence and the history. It returns apierr.ScreeningHitNotFound and apierr.NoAccess.
func (s *Service) Hit(ctx context.Context, in endpoint.ByID) (HitDetails, error) {
	h, err := s.visible(ctx, s.db, in.ID)
	if err != nil {
		return HitDetails{}, err
	}
	endpoint.Report(ctx, endpoint.Event{Kind: endpoint.Reading, Action: "screening.hit_read", RecType: hitsTable, RecID: h.ID})
	return s.details(ctx, s.db, h)
}

func (s *Service) details(ctx context.Context, q store.Querier, h storedHit) (HitDetails, error) {
	d := HitDetails{Hit: h.Hit, Matched: []Evidence{}}
	var kept evidence
	if err := json.Unmarshal([]byte(h.evidence), &kept); err != nil {
		return d, fmt.Errorf("decode the evidence of hit %s: %w", h.ID, err)
	}
	d.Subject, d.Matched = kept.Subject, append(d.Matched, kept.Matched...)
	l, err := h.laterOne()
	if err != nil {
		return d, err
	}
	if l != nil {
		d.Later = &l.Comparison
	}
	entries, err := entriesOf(ctx, q, []string{h.EntryID})
	if err != nil {
		return d, err
	}
	if e, listed := entries[h.EntryID]; listed {
		d.Entry = &ListedEntry{Names: orEmpty(e.Names), Type: typeOf(e.Kind), Programs: orEmpty(e.Programs), DatesOfBirth: []string{}, Countries: orEmpty(e.Countries)}
		for _, b := range e.Births {
			d.Entry.DatesOfBirth = append(d.Entry.DatesOfBirth, dateText(b))
		}
	}
	d.History, err = store.All(ctx, q, func(row store.Scanner) (c HitChange, err error) {
		err = row.Scan(&c.Action, (*string)(&c.Status), &c.Decision, &c.Reason, &c.ChangedAt, &c.ChangedBy)
		return c, err
	}, selectHitHistory, h.ID)
	return d, err
}

// OfCustomer returns the hits of a customer and its payers, the newest first. The caller decides who may see them.
func (s *Service) OfCustomer(ctx context.Context, q store.Querier, customerID string) ([]hit.Hit, error) {
	return store.All(ctx, q, scanShown, selectOfCustomer, customerID)
}

// CountBlocking returns how many hits block the verification of each of the customers, see [hit.Screening].
func (s *Service) CountBlocking(ctx context.Context, q store.Querier, customerIDs []string) (map[string]int64, error) {
	counts := map[string]int64{}
	err := store.EachOf(ctx, q, func(row store.Scanner) error {
		var id string
		var n int64
		err := row.Scan(&id, &n)
		counts[id] = n
		return err
	}, countBlocking, customerIDs)
	return counts, err
}

// Readable returns which hits the caller may read, for the change feed.
func (s *Service) Readable(ctx context.Context, ids []string) (map[string]bool, error) {
	kinds := readable(access.From(ctx), access.Read)
	if len(kinds) == 0 || len(ids) == 0 {
		return nil, nil //nolint:nilnil // none
	}
	customers, personas, err := s.ownIDs(ctx)
	if err != nil {
		return nil, err
	}
	hits, err := store.All(ctx, s.db, scanHit, fmt.Sprintf(selectHits, store.In(1, len(ids))), store.AppendIn(nil, ids)...)
	if err != nil {
		return nil, err
	}
	may := make(map[string]bool, len(hits))
	for _, h := range hits {
		own := h.CustomerID != nil && slices.Contains(customers, *h.CustomerID) || h.SubjectType == hit.Persona && slices.Contains(personas, h.SubjectID)
		may[h.ID] = !own && slices.Contains(kinds, h.SubjectType)
	}
	return may, nil
}

// ownIDs returns the ids of the customers and personas that are, or were, the caller.
func (s *Service) ownIDs(ctx context.Context) (customers, personas []string, err error) {
	ofCustomers, ofPersonas, err := s.Reviews.Own(ctx, s.db)
	if err == nil {
		customers, err = store.All(ctx, s.db, store.Text, ofCustomers.SQL, ofCustomers.Args...)
	}
	if err == nil {
		personas, err = store.All(ctx, s.db, store.Text, ofPersonas.SQL, ofPersonas.Args...)
	}
	return customers, personas, err
}

// ReadHit reads a hit for the change feed, as its endpoint answers it.
func (s *Service) ReadHit(ctx context.Context, id string) (any, error) {
	h, err := s.visible(ctx, s.db, id)
	return h.Hit, err
}

// hitProof covers the hits. Their history follows from the entries about them.
var hitProof = records.Proof{Type: hitsTable, From: hitsTable, Key: "id", Read: readHit, Migration: 82}

func readHit(ctx context.Context, q store.Querier, id string) (store.Record, error) {
	h, err := scanHit(q.QueryRow(ctx, selectHit, id))
	return h.record(), err
}

func (h storedHit) record() store.Record {
	stored := map[string]any{"settled": h.settled, "entry_state": h.entryState, "subject_state": h.subjectState, "evidence": h.evidence}
	if h.later != "" { // hits of earlier versions have none
		stored["later"] = h.later
	}
	return store.Record{Answer: h.Hit, Stored: stored}
}

// The changes of a hit, as its history names them.
const (
	hitOpened    = "opened"
	hitChanged   = "changed"
	hitReopened  = "reopened"
	hitClosed    = "closed"
	hitProposed  = "proposed"
	hitWithdrawn = "withdrawn"
	hitDecided   = "decided"
	hitEscalated = "escalated"
)

// writeHit stores a hit with an entry of its history and of the audit trail. before is nil for a new one.
func writeHit(ctx context.Context, tx *store.Tx, before *storedHit, h storedHit, action, reason string) error {
	h.UpdatedAt, h.Version = tx.Now(), h.Version+1
	var was any
	var err error
	if before == nil {
		h.CreatedAt = h.UpdatedAt
		_, err = tx.Exec(ctx, insertHit, h.ID, string(h.Status), scoreText(h.Score), h.List, h.EntryID, h.SourceID, h.EntryName, h.SubjectType, h.SubjectID, h.SubjectName,
			h.CustomerID, h.CreatedAt, h.UpdatedAt, h.Decision, h.Reason, h.ProposedAt, h.ProposedBy, h.DecidedAt, h.DecidedBy, h.Version,
			string(h.settled), h.entryState, h.subjectState, h.evidence, h.Cause, h.later, h.Escalation, types.Fold(h.List), types.Fold(h.EntryName), types.Fold(h.SubjectName))
	} else {
		was = before.record()
		_, err = tx.Exec(ctx, updateHit, h.ID, string(h.Status), scoreText(h.Score), h.SourceID, h.EntryName, h.SubjectName, h.UpdatedAt, h.Decision, h.Reason,
			h.ProposedAt, h.ProposedBy, h.DecidedAt, h.DecidedBy, h.Version, string(h.settled), h.entryState, h.subjectState, h.evidence,
			types.Fold(h.EntryName), types.Fold(h.SubjectName), h.Cause, h.later, h.Escalation)
	}
	if err != nil {
		return err
	}
	actor := records.Actor(ctx)
	if _, err := tx.Exec(ctx, insertHitChange, store.NewID(), h.ID, action, string(h.Status), h.Decision, reason, h.UpdatedAt, actor); err != nil {
		return err
	}
	tx.Audit(store.AuditEntry{Actor: actor, Action: "screening.hit_" + action, RecType: hitsTable, RecID: h.ID, Before: was, After: h.record()})
	return nil
}
