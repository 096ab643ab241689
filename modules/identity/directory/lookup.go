package directory

import (
	"context"
	"errors"

	"kontor/modules/kit/find"
	"kontor/modules/kit/list"
	"kontor/modules/kit/records"
	"kontor/modules/kit/types"
	"kontor/server/access"
	"kontor/server/apierr"
	"kontor/store"
)

// Other modules call the functions of this file through interfaces of their own. A module that can join a published view
// in a statement of its own needs none of them.

// idsAtOnce is how many ids one statement takes.
const idsAtOnce = 64

const (
	// One row for each role, at least one of a user.
	selectRolesOf = `
		SELECT COALESCE(r.role_id, ''), u.status = 'active' AND u.kind = 'person'
		FROM users u LEFT JOIN held_roles r ON r.user_id = u.id
		WHERE u.id = $1 ORDER BY r.role_id`

	selectHolders = `SELECT user_id FROM user_roles WHERE role_id = $1 ORDER BY user_id`

	deleteHolders = `DELETE FROM user_roles WHERE role_id = $1`

	selectActive = `SELECT id FROM users WHERE status = 'active' AND id IN (%s)`

	selectActivePeople = `SELECT id FROM users WHERE status = 'active' AND kind = 'person' AND id IN (%s)`

	selectAdministrators = `
		SELECT u.id FROM held_roles r JOIN users u ON u.id = r.user_id
		WHERE r.role_id = $1 AND u.status = 'active' AND u.kind = 'person' ORDER BY u.id`

	selectAddresses = `
		SELECT c.user_id, c.type, c.value, u.language, c.trusted_from
		FROM credentials c
		JOIN users u ON u.id = c.user_id
		WHERE c.user_id IN (%s) AND c.validated = TRUE AND c.type IN ('email', 'phone') AND u.status = 'active'
		ORDER BY c.user_id, c.created_at, c.id`

	selectAnyUser = `SELECT 1 FROM users LIMIT 1`

	updateLastLogin = `UPDATE users SET last_login_at = $2 WHERE id = $1`
)

// RolesOf returns the ids of the roles that a user holds, in their order, and last Everyone: see [access.HeldRoles].
func (s *Service) RolesOf(ctx context.Context, q store.Querier, userID string) (roles []string, err error) {
	activePerson := false
	err = store.Each(ctx, q, func(row store.Scanner) error {
		var role string
		err := row.Scan(&role, &activePerson)
		if role != "" {
			roles = append(roles, role)
		}
		return err
	}, selectRolesOf, userID)
	return access.HeldRoles(roles, activePerson), err
}

// HolderOf returns the id of the user who has a credential, or an empty text.
func (s *Service) HolderOf(ctx context.Context, q store.Querier, credentialID string) (string, error) {
	c, err := credentialTable.GetUnchecked(ctx, q, credentialID)
	if errors.Is(err, apierr.UserNotFound) {
		return "", nil
	}
	return c.UserID, err
}

// InvitedRoles returns the ids of the roles that an invitation of another user than the caller gives.
func (s *Service) InvitedRoles(ctx context.Context, q store.Querier, invitationID string) ([]string, error) {
	i, err := s.invitation(ctx, q, invitationID)
	if errors.Is(err, apierr.InvitationNotFound) || i.CreatedBy == access.From(ctx).UserID {
		return nil, nil
	}
	return i.roles, err
}

// RemoveRole takes a role from every user who holds it, as part of its deletion. It writes an audit entry for each of them;
// their sessions see the change on the next request.
func (s *Service) RemoveRole(ctx context.Context, tx *store.Tx, roleID string) error {
	holders, err := store.All(ctx, tx, store.Text, selectHolders, roleID)
	if err != nil {
		return err
	}
	if _, err := tx.Exec(ctx, deleteHolders, roleID); err != nil {
		return err
	}
	for _, userID := range holders {
		s.changed(tx, userID)
		if err := userRolesProof.Audit(ctx, tx, actionUserRoles, userID, nil); err != nil {
			return err
		}
	}
	return nil
}

// Active reports which of the users exist and are active. Other ids are missing from the result.
func (s *Service) Active(ctx context.Context, q store.Querier, ids ...string) (map[string]bool, error) {
	return readActive(ctx, q, selectActive, ids)
}

// ActivePeople reports which of the users are active people. Service accounts are missing from the result.
func (s *Service) ActivePeople(ctx context.Context, q store.Querier, ids ...string) (map[string]bool, error) {
	return readActive(ctx, q, selectActivePeople, ids)
}

// Administrators returns the ids of the active people with the role Administrator, in their order.
func (s *Service) Administrators(ctx context.Context, q store.Querier) ([]string, error) {
	return store.All(ctx, q, store.Text, selectAdministrators, access.Administrator)
}

func readActive(ctx context.Context, q store.Querier, statement string, ids []string) (map[string]bool, error) {
	active := make(map[string]bool, len(ids))
	err := store.EachOf(ctx, q, func(row store.Scanner) error {
		var id string
		err := row.Scan(&id)
		active[id] = true
		return err
	}, statement, ids)
	return active, err
}

// Addresses returns the validated e-mail addresses and phone numbers of those users who are active, the oldest address of
// each user first.
func (s *Service) Addresses(ctx context.Context, q store.Querier, ids ...string) ([]types.Address, error) {
	var found []types.Address
	err := store.EachOf(ctx, q, func(row store.Scanner) error {
		var a types.Address
		var kind string
		var trustedFrom store.Time
		if err := row.Scan(&a.UserID, &kind, &a.Value, &a.Language, &trustedFrom); err != nil {
			return err
		}
		a.OnTrial = Credential{trustedFrom: trustedFrom}.onTrial(q.Now())
		a.Channel = channel(kind)
		found = append(found, a)
		return nil
	}, selectAddresses, ids)
	return found, err
}

// Any reports whether there is any user: a new installation has none.
func (s *Service) Any(ctx context.Context, q store.Querier) (bool, error) {
	return store.Exists(ctx, q, selectAnyUser)
}

// SetLastLogin records the time of a sign-in. It leaves no audit entry: the new session has one.
func (s *Service) SetLastLogin(ctx context.Context, tx *store.Tx, userID string) error {
	return tx.Run(ctx, updateLastLogin, userID, tx.Now())
}

// changed invalidates what is cached of a user after the commit: their sessions, and their name and roles.
func (s *Service) changed(tx *store.Tx, userID string) {
	s.auth.Changed(tx, userID)
	s.invalidate(tx, userID)
}

// Get returns a user. It returns apierr.UserNotFound and apierr.NoAccess.
func (s *Service) Get(ctx context.Context, id string) (User, error) { return s.get(ctx, userPath{id}) }

// CallerOf returns an active user with their roles, as the caller of what Kontor does in their name. ok is false for a user who
// is not active.
func (s *Service) CallerOf(ctx context.Context, q store.Querier, id string) (caller *access.Caller, ok bool, err error) {
	active, err := s.Active(ctx, q, id)
	if err != nil || !active[id] {
		return nil, false, err
	}
	roles, err := s.RolesOf(ctx, q, id)
	return &access.Caller{UserID: id, Roles: roles}, err == nil, err
}

// The kinds of documents that find users.
const (
	userSource       = "users"
	credentialSource = "credentials"
)

// TextSources returns what finds users: display name and id, and for callers who may read all credentials their e-mail addresses,
// telephone numbers and user names.
func (s *Service) TextSources() []find.Source {
	return []find.Source{
		{From: userSource, Columns: "id, display_name", Where: "erased_at IS NULL", Scan: func(row list.Row, d *store.TextDocument) error {
			var name string
			err := row.Scan(&d.ID, &name)
			d.Record, d.Title, d.Body = d.ID, find.Words(name), types.IDWords(d.ID)
			return err
		}},
		{From: credentialSource, Columns: "id, user_id, type, value", Scan: func(row list.Row, d *store.TextDocument) error {
			var kind, value string
			err := row.Scan(&d.ID, &d.Record, &kind, &value)
			if d.Body = find.Words(value); kind == "phone" {
				d.Body = types.PhoneWords(value)
			}
			return err
		}},
	}
}

// textSources returns the kinds of documents that the caller may search.
func textSources(caller *access.Caller) []string {
	if caller.May(access.Credentials, access.ReadAll) {
		return []string{userSource, credentialSource}
	}
	return []string{userSource}
}

// FindText returns the users that match a text best, of those that the caller may read.
func (s *Service) FindText(ctx context.Context, text list.Words, limit int) ([]find.Hit, error) {
	caller := access.From(ctx)
	found, err := userList.Find(ctx, s.db, text.Search(textSources(caller)...), limit, userTable.Visible(caller))
	return find.Hits(found, func(u User) find.Hit { return find.Hit{Title: u.DisplayName, Subtitle: u.Status} }), err
}

// FillSortKeys computes the sort keys of names that earlier versions have stored. It runs regularly.
func (s *Service) FillSortKeys(ctx context.Context) error {
	return records.FillSortKeys(ctx, s.db, "users", "display_name")
}
