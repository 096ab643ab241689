package directory

import (
	"context"
	"fmt"
	"slices"
	"time"

	"kontor/modules/kit/event"
	"kontor/modules/kit/records"
	"kontor/server/access"
	"kontor/server/apierr"
	"kontor/store"
)

// Term is when a user holds a role. Roles without a beginning and an end have none.
type Term struct {
	Role      string      `json:"role" example:"Advisor"`
	StartsAt  *store.Time `json:"starts_at" doc:"null: the user holds the role already."`
	ExpiresAt *store.Time `json:"expires_at" doc:"null: the role does not end by itself."`
	InForce   bool        `json:"in_force" doc:"Whether the user holds the role now."`
}

// termInput is when a user shall hold a role.
type termInput struct {
	Role      string      `json:"role" required:"true" example:"Advisor" doc:"Name or id of a role in roles."`
	StartsAt  *store.Time `json:"starts_at" doc:"Without it, or in the past: at once."`
	ExpiresAt *store.Time `json:"expires_at" doc:"Without it, the role does not end by itself."`
}

// terms receives roles with a beginning or an end: see rbac.
type terms interface{ TermsChanged(tx *store.Tx) }

// notifier notifies users that a role ends.
type notifier interface {
	Notify(ctx context.Context, tx *store.Tx, e event.Event) error
}

const (
	selectAssigned = `SELECT role_id, starts_at, expires_at, in_force FROM user_roles WHERE user_id = $1 ORDER BY role_id`

	upsertUserRole = `
		INSERT INTO user_roles (user_id, role_id, created_at, created_by, starts_at, expires_at, in_force) VALUES ($1, $2, $3, $4, $5, $6, $7)
		ON CONFLICT (user_id, role_id) DO UPDATE SET
			starts_at = excluded.starts_at, expires_at = excluded.expires_at, in_force = excluded.in_force, warned = FALSE`

	selectNextTerm = `
		SELECT MIN(at) FROM (
			SELECT MIN(starts_at) AS at FROM user_roles WHERE in_force = FALSE
			UNION ALL
			SELECT MIN(expires_at) AS at FROM user_roles WHERE expires_at IS NOT NULL) next`

	selectDueTerms = `
		SELECT user_id, role_id, expires_at IS NOT NULL AND expires_at <= $1 FROM user_roles
		WHERE expires_at <= $1 OR in_force = FALSE AND starts_at <= $1 ORDER BY user_id, role_id LIMIT $2`

	updateRoleInForce = `UPDATE user_roles SET in_force = TRUE WHERE user_id = $1 AND role_id = $2`

	// Roles for less than a day are left out: both sides have just learnt of them.
	selectEndingRoles = `
		SELECT u.user_id, u.role_id, u.created_by, u.expires_at, n.name FROM user_roles u JOIN role_names n ON n.id = u.role_id
		WHERE u.expires_at <= $1 AND u.expires_at > $2 AND u.warned = FALSE AND COALESCE(u.starts_at, u.created_at) < u.expires_at - $3
		ORDER BY u.expires_at, u.user_id, u.role_id LIMIT $4`

	updateRoleWarned = `UPDATE user_roles SET warned = TRUE WHERE user_id = $1 AND role_id = $2`

	selectTerms = `
		SELECT ur.user_id, r.name, ur.starts_at, ur.expires_at, ur.in_force FROM user_roles ur JOIN role_names r ON r.id = ur.role_id
		WHERE ur.user_id IN (%s) AND (ur.expires_at IS NOT NULL OR ur.in_force = FALSE) ORDER BY r.name_key`
)

// assigned is a role that a user holds now or later.
type assigned struct {
	roleID          string
	starts, expires *store.Time
	inForce         bool
}

func scanAssigned(row store.Scanner) (a assigned, err error) {
	err = row.Scan(&a.roleID, &a.starts, &a.expires, &a.inForce)
	return a, err
}

// same reports whether two roles have the same term.
func (a assigned) same(b assigned) bool {
	equal := func(x, y *store.Time) bool { return x == y || x != nil && y != nil && *x == *y }
	return equal(a.starts, b.starts) && equal(a.expires, b.expires) && a.inForce == b.inForce
}

// assignedTo returns the roles that a user holds now or later.
func assignedTo(ctx context.Context, q store.Querier, userID string) ([]assigned, error) {
	return store.All(ctx, q, scanAssigned, selectAssigned, userID)
}

// AssignedRoles returns the ids of the roles that a user holds now or later, in their order.
func (s *Service) AssignedRoles(ctx context.Context, q store.Querier, userID string) ([]string, error) {
	all, err := assignedTo(ctx, q, userID)
	ids := make([]string, len(all))
	for i, a := range all {
		ids[i] = a.roleID
	}
	return ids, err
}

// resolveTerms returns the wanted terms by role id. It returns apierr.InvalidInput for terms of other roles than the wanted ones, and
// for impossible times.
func resolveTerms(ctx context.Context, q store.Querier, terms []termInput, wanted []string) (map[string]assigned, error) {
	var problems apierr.Fields
	found := map[string]assigned{}
	for i, t := range terms {
		at := fmt.Sprintf("terms.%d.", i)
		ids, err := resolveRoles(ctx, q, []string{t.Role})
		if err != nil || len(ids) == 0 || !slices.Contains(wanted, ids[0]) {
			problems.Add(at+"role", "invalid.unknown_record")
			continue
		}
		a := assigned{roleID: ids[0], starts: t.StartsAt, expires: t.ExpiresAt}
		if a.inForce = a.starts == nil || *a.starts <= q.Now(); a.inForce {
			a.starts = nil
		}
		if a.expires != nil && *a.expires <= q.Now() {
			problems.Add(at+"expires_at", "invalid.term_past")
		}
		if a.expires != nil && t.StartsAt != nil && *t.StartsAt >= *a.expires {
			problems.Add(at+"expires_at", "invalid.term_order")
		}
		found[a.roleID] = a
	}
	return found, problems.Err()
}

// wantedRoles returns the roles that a user shall have. Without terms, the roles that they have keep theirs, and roles that begin later
// stay; with terms, all others begin at once and do not end.
func wantedRoles(now []assigned, ids []string, terms map[string]assigned) []assigned {
	var wanted []assigned
	for _, id := range ids {
		a := assigned{roleID: id, inForce: true}
		if t, ok := terms[id]; ok {
			a = t
		} else if i := slices.IndexFunc(now, func(n assigned) bool { return n.roleID == id }); i >= 0 && terms == nil {
			a.expires = now[i].expires
		}
		wanted = append(wanted, a)
	}
	for _, n := range now {
		if terms == nil && !n.inForce && !slices.Contains(ids, n.roleID) {
			wanted = append(wanted, n)
		}
	}
	return wanted
}

// NextTerm returns when the next role begins or ends; nil: none does.
func (s *Service) NextTerm(ctx context.Context, q store.Querier) (at *store.Time, err error) {
	err = q.QueryRow(ctx, selectNextTerm).Scan(&at)
	return at, err
}

// dueTerm is a role that has begun or ended.
type dueTerm struct {
	userID, roleID string
	ended          bool
}

// ApplyTerms begins and ends roles that are due, at most limit of them, and returns their number.
func (s *Service) ApplyTerms(ctx context.Context, tx *store.Tx, limit int) (int, error) {
	due, err := store.All(ctx, tx, func(row store.Scanner) (d dueTerm, err error) {
		err = row.Scan(&d.userID, &d.roleID, &d.ended)
		return d, err
	}, selectDueTerms, tx.Now(), limit)
	if err != nil {
		return 0, err
	}
	for i, d := range due {
		statement := updateRoleInForce
		if d.ended {
			statement = deleteUserRole
		}
		if _, err := tx.Exec(ctx, statement, d.userID, d.roleID); err != nil {
			return 0, err
		}
		if i+1 < len(due) && due[i+1].userID == d.userID {
			continue // one entry for all roles of a user
		}
		if err := s.auditTerms(ctx, tx, d.userID); err != nil {
			return 0, err
		}
	}
	return len(due), nil
}

// auditTerms writes the entries of a user whose roles have begun or ended.
func (s *Service) auditTerms(ctx context.Context, tx *store.Tx, userID string) error {
	if err := accountProof.ChangeRow(ctx, tx, "users.roles_term", userID, touchUser, userID, tx.Now(), records.Actor(ctx)); err != nil {
		return err
	}
	s.changed(tx, userID)
	return userRolesProof.Audit(ctx, tx, actionRoleTerms, userID, nil)
}

// actionRoleTerms is the action of the audit entries about roles that have begun or ended by themselves.
const actionRoleTerms = "user_roles.term"

const (
	warnBefore = 24 * time.Hour
	warnBatch  = 50
)

// endingRole is a role that ends soon.
type endingRole struct {
	userID, roleID, by, name string
	expires                  store.Time
}

// WarnOfTerms notifies those who hold a role that ends within a day, and who gave it, once. Call it about once a minute, on one node.
func (s *Service) WarnOfTerms(ctx context.Context) error {
	ending := func(q store.Querier) ([]endingRole, error) {
		return store.All(ctx, q, func(row store.Scanner) (r endingRole, err error) {
			err = row.Scan(&r.userID, &r.roleID, &r.by, &r.expires, &r.name)
			return r, err
		}, selectEndingRoles, q.Now().Add(warnBefore), q.Now(), warnBefore.Milliseconds(), warnBatch)
	}
	err := store.EachFound(ctx, s.db, ending, func(tx *store.Tx, r endingRole) error { return s.warn(ctx, tx, r) })
	if err != nil {
		return fmt.Errorf("announce the end of roles: %w", err)
	}
	return nil
}

func (s *Service) warn(ctx context.Context, tx *store.Tx, r endingRole) error {
	if _, err := tx.Exec(ctx, updateRoleWarned, r.userID, r.roleID); err != nil {
		return err
	}
	recipients := slices.DeleteFunc([]string{r.userID, r.by}, func(id string) bool { return id == store.NilID })
	return s.Peers.Notifier.Notify(ctx, tx, event.Event{
		Kind: event.AccessExpiring, Type: access.Roles, RecordID: r.roleID, Recipients: recipients,
		Args: map[string]any{"Access": r.name, "Date": r.expires.Std().Format("2006-01-02 15:04 UTC")},
	})
}

// endsOrBegins reports whether a role of a user has a term.
func (a assigned) endsOrBegins() bool { return a.expires != nil || !a.inForce }
