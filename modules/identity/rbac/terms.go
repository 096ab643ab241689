package rbac

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"kontor/modules/kit/event"
	"kontor/modules/kit/revocable"
	"kontor/server/access"
	"kontor/server/apierr"
	"kontor/store"
)

// Grants and held roles may begin and end by themselves. Rights that are not in force have no row in the tables by which access is decided, so
// that no statement about access has to compare times. At the time of a change, the first node that notices it writes it: then it is
// a change like any other, and lists, streams, sessions and the policies of all nodes follow.
//
// Every process remembers when the next change is due. It looks twice a second, and before each request: a request after that time is not
// answered before the change is made. So no user keeps a right because a job is late.

// terms is when the next grant or role begins or ends.
type terms struct {
	next  atomic.Int64 // Unix milliseconds; never: none is known
	loads revocable.Loader
}

const never = int64(1<<63 - 1)

// TermsChanged announces that a transaction has given a grant or a role with a beginning or an end.
func (s *Service) TermsChanged(tx *store.Tx) { tx.Announce(s.termsChanged, "") }

// TermsDue reports whether a grant or a role has begun or ended and the tables do not say so yet. It takes nanoseconds.
func (s *Service) TermsDue() bool {
	next := s.terms.next.Load()
	return next != never && int64(s.db.Now()) >= next
}

// retime finds out when the next change is due. If that cannot be read, one is due at once, so that it is tried again.
func (s *Service) retime(ctx context.Context) error {
	next, err := s.nextTerm(ctx)
	if err != nil {
		s.terms.next.Store(0)
		return fmt.Errorf("read when rights begin and end: %w", err)
	}
	s.terms.next.Store(next)
	return nil
}

const selectNextTerm = `
	SELECT MIN(at) FROM (
		SELECT MIN(starts_at) AS at FROM grant_records WHERE in_force = FALSE
		UNION ALL
		SELECT MIN(expires_at) AS at FROM grant_records WHERE expires_at IS NOT NULL) next`

func (s *Service) nextTerm(ctx context.Context) (int64, error) {
	var grants *store.Time
	if err := s.db.QueryRow(ctx, selectNextTerm).Scan(&grants); err != nil {
		return 0, err
	}
	roles, err := s.Users.NextTerm(ctx, s.db)
	if err != nil {
		return 0, err
	}
	next := never
	for _, at := range []*store.Time{grants, roles} {
		if at != nil {
			next = min(next, int64(*at))
		}
	}
	return next, nil
}

// termBatch is the number of grants, and of roles, that one transaction begins or ends.
const termBatch = 100

// ApplyTerms begins and ends the grants and roles that are due. It costs nothing while none is. Concurrent calls share one.
func (s *Service) ApplyTerms(ctx context.Context) error {
	if !s.TermsDue() {
		return nil
	}
	return s.terms.loads.Do(ctx, func(ctx context.Context) error {
		for more := s.TermsDue(); more; {
			err := s.db.InTx(access.With(ctx, &access.Caller{}), func(tx *store.Tx) (err error) {
				more, err = s.applyBatch(ctx, tx)
				return err
			})
			if err != nil {
				return fmt.Errorf("begin and end rights: %w", err)
			}
		}
		return s.retime(ctx)
	})
}

const (
	selectEnded   = `SELECT ` + grantColumns + ` FROM grant_records WHERE expires_at <= $1 ORDER BY expires_at, id LIMIT $2`
	selectStarted = `SELECT ` + grantColumns + ` FROM grant_records WHERE in_force = FALSE AND starts_at <= $1 ORDER BY starts_at, id LIMIT $2`
	updateInForce = `UPDATE grant_records SET in_force = TRUE WHERE id = $1`
)

// applyBatch writes some changes that are due. more reports whether there may be others.
func (s *Service) applyBatch(ctx context.Context, tx *store.Tx) (more bool, err error) {
	ctx = access.With(ctx, &access.Caller{}) // no user does it: the entries name the system
	ended, err := store.All(ctx, tx, scanGrant, selectEnded, tx.Now(), termBatch)
	if err != nil {
		return false, err
	}
	for _, g := range ended {
		if err := deleteGrant(ctx, tx, g); err != nil {
			return false, err
		}
		grantTable.Audit(ctx, tx, "rbac.grants.expire", g.ID, g, nil)
	}
	started, err := store.All(ctx, tx, scanGrant, selectStarted, tx.Now(), termBatch)
	if err != nil {
		return false, err
	}
	for _, before := range started {
		g := before
		g.later = false
		err := insertRights(ctx, tx, g)
		if errors.Is(err, apierr.GrantExists) { // another grant gives the same: there is nothing to begin
			_, err = tx.Exec(ctx, deleteGrantRecord, g.ID)
			grantTable.Audit(ctx, tx, "rbac.grants.vanish", g.ID, before, nil)
			if err != nil {
				return false, err
			}
			continue
		}
		if err != nil {
			return false, err
		}
		if _, err := tx.Exec(ctx, updateInForce, g.ID); err != nil {
			return false, err
		}
		grantTable.Audit(ctx, tx, "rbac.grants.start", g.ID, before, g)
	}
	if len(ended)+len(started) > 0 {
		tx.Announce(s.changed, "")
	}
	roles, err := s.Users.ApplyTerms(ctx, tx, termBatch)
	return len(ended) == termBatch || len(started) == termBatch || roles == termBatch, err
}

// checkTerm checks the beginning and the end of a grant, and reports whether it begins later.
func checkTerm(starts, expires *store.Time, now store.Time) (later bool, err error) {
	var problems apierr.Fields
	if expires != nil && *expires <= now {
		problems.Add("expires_at", "invalid.term_past")
	}
	if starts != nil && expires != nil && *starts >= *expires {
		problems.Add("expires_at", "invalid.term_order")
	}
	return starts != nil && *starts > now, problems.Err()
}

const (
	// warnBefore is how long before its end both sides learn that a grant ends.
	warnBefore = 24 * time.Hour
	warnBatch  = 50

	// Grants for less than a day are left out: both sides have just learnt of them.
	selectEnding = `
		SELECT ` + grantColumns + ` FROM grant_records
		WHERE expires_at <= $1 AND expires_at > $2 AND warned = FALSE AND COALESCE(starts_at, created_at) < expires_at - $3
		ORDER BY expires_at, id LIMIT $4`
	updateWarned = `UPDATE grant_records SET warned = TRUE WHERE id = $1`

	// maxWarnedHolders bounds how many holders of a role learn that one of its grants ends.
	selectHoldersOf  = `SELECT user_id FROM held_roles WHERE role_id = $1 ORDER BY user_id LIMIT $2`
	maxWarnedHolders = 1000
)

// notifier is what the module needs from notifications.
type notifier interface {
	Notify(ctx context.Context, tx *store.Tx, e event.Event) error
}

// WarnOfTerms notifies those who have a grant that ends within a day, and who gave it, once. Call it about once a minute, on one node.
func (s *Service) WarnOfTerms(ctx context.Context) error {
	ending := func(q store.Querier) ([]Grant, error) {
		return store.All(ctx, q, scanGrant, selectEnding, q.Now().Add(warnBefore), q.Now(), warnBefore.Milliseconds(), warnBatch)
	}
	err := store.EachFound(ctx, s.db, ending, func(tx *store.Tx, g Grant) error { return s.warn(ctx, tx, g) })
	if err != nil {
		return fmt.Errorf("announce the end of grants: %w", err)
	}
	return nil
}

func (s *Service) warn(ctx context.Context, tx *store.Tx, g Grant) error {
	if _, err := tx.Exec(ctx, updateWarned, g.ID); err != nil {
		return err
	}
	recipients := []string{g.CreatedBy}
	if g.UserID != nil {
		recipients = append(recipients, *g.UserID)
	} else {
		holders, err := store.All(ctx, tx, store.Text, selectHoldersOf, *g.RoleID, maxWarnedHolders)
		if err != nil {
			return err
		}
		recipients = append(recipients, holders...)
	}
	recipients = slices.DeleteFunc(recipients, func(id string) bool { return id == store.NilID })
	return s.Notifier.Notify(ctx, tx, event.Event{
		Kind: event.AccessExpiring, Type: access.Grants, RecordID: g.ID, Recipients: recipients,
		Args: map[string]any{"Access": g.what(), "Date": g.ExpiresAt.Std().Format("2006-01-02 15:04 UTC")},
	})
}

// what names the rights of a grant: "customers: read, update" or "GET /v1/customers".
func (g Grant) what() string {
	if g.Endpoint != nil {
		return *g.Endpoint
	}
	return *g.RecType + ": " + strings.Join(g.Permissions, ", ")
}

// selectLater reads grants of a principal that begin later, on the same type and record or the same endpoint.
const selectLater = `
	SELECT ` + grantColumns + ` FROM grant_records
	WHERE in_force = FALSE AND COALESCE(role_id, user_id) = $1 AND COALESCE(rec_type, '') = $2 AND COALESCE(rec_id, '') = $3
		AND COALESCE(endpoint, '') = $4`

// checkLater returns apierr.GrantExists if a grant that begins later gives one of the permissions: each permission has one grant.
func checkLater(ctx context.Context, tx *store.Tx, g Grant) error {
	_, principal := g.principal()
	var recType, key string
	if g.RecType != nil {
		recType = *g.RecType
	} else {
		key = *g.Endpoint
	}
	found, err := store.All(ctx, tx, scanGrant, selectLater, principal, recType, g.recID(), key)
	if err != nil {
		return err
	}
	for _, other := range found {
		if g.Endpoint != nil || slices.ContainsFunc(other.Permissions, func(p string) bool { return slices.Contains(g.Permissions, p) }) {
			return apierr.GrantExists
		}
	}
	return nil
}

const selectLaterOf = `
	SELECT ` + grantColumns + ` FROM grant_records WHERE in_force = FALSE AND COALESCE(role_id, user_id) IN (`

// lackingLater returns a right that a holder will have by a grant that begins later and that a caller does not have, or an empty text.
// Otherwise a caller who may reset the sign-in of a user would have that right one day.
func (s *Service) lackingLater(ctx context.Context, q store.Querier, caller, holder *access.Caller) (string, error) {
	principals := principalsOf(holder)
	if len(principals) == 0 {
		return "", nil
	}
	found, err := store.All(ctx, q, scanGrant, selectLaterOf+store.In(1, len(principals))+`)`, store.AppendIn(nil, principals)...)
	if err != nil {
		return "", err
	}
	for _, g := range found {
		in := g.input()
		own, err := s.ownPermissions(ctx, caller.UserID, in)
		if err != nil {
			return "", err
		}
		err = s.checkHeld(ctx, q, caller, own, in)
		if errors.Is(err, apierr.GrantNotHeld) {
			return g.what(), nil
		}
		if err != nil {
			return "", err
		}
	}
	return "", nil
}

// input returns what a grant was created from.
func (g Grant) input() GrantInput {
	in := GrantInput{RecID: g.recID(), Permissions: g.Permissions, external: g.external(), StartsAt: g.StartsAt, ExpiresAt: g.ExpiresAt}
	if g.Endpoint != nil {
		in.Endpoint = *g.Endpoint
	} else {
		in.RecType = *g.RecType
	}
	if g.RoleID != nil {
		in.RoleID = *g.RoleID
	} else {
		in.UserID = *g.UserID
	}
	return in
}

// NextTerm returns when the next grant or role begins or ends after a time; nil: none does.
func (s *Service) NextTerm(_ context.Context, after store.Time) (*store.Time, error) {
	next := store.Time(s.terms.next.Load())
	if next == store.Time(never) || next <= after {
		return nil, nil
	}
	return &next, nil
}
