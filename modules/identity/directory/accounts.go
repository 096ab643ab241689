package directory

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"kontor/modules/kit/evidence"
	"kontor/modules/kit/list"
	"kontor/modules/kit/records"
	"kontor/modules/kit/types"
	"kontor/server/access"
	"kontor/server/apierr"
	"kontor/server/endpoint"
	"kontor/store"
)

// list lists the users whom the caller may read. It returns apierr.InvalidInput for an unknown role.
func (s *Service) list(ctx context.Context, in listInput) (list.Page[User], error) {
	caller := access.From(ctx)
	where := []list.Where{userTable.Visible(caller)}
	if in.Role != "" {
		held, err := holdersOf(ctx, s.db, in.Role)
		if err != nil {
			return list.Page[User]{}, err
		}
		where = append(where, held)
	}
	page, err := userList.Page(ctx, s.db, in.Query.WithText(in.Text, textSources(caller)...), where...)
	if err != nil {
		return page, err
	}
	return page, fillRoles(ctx, s.db, page.Data.Rows)
}

// holdersOf returns the condition that users hold a role, given by name or id.
func holdersOf(ctx context.Context, q store.Querier, role string) (list.Where, error) {
	if strings.EqualFold(role, access.Everyone) || types.Fold(role) == "everyone" {
		return list.Where{SQL: `id IN (` + records.HoldersOfEveryone + `)`, Args: []any{access.Registrant}, Tables: []string{"user_roles"}}, nil
	}
	ids, err := resolveRoles(ctx, q, []string{role})
	if len(ids) == 0 {
		if err == nil || errors.As(err, new(*apierr.Error)) {
			err = apierr.Invalid("role", "invalid.unknown_record")
		}
		return list.Where{}, err
	}
	return list.Where{SQL: `id IN (SELECT user_id FROM held_roles WHERE role_id = $1)`, Args: []any{ids[0]}, Tables: []string{"user_roles"}}, nil
}

// get reads a user. It returns apierr.UserNotFound and apierr.NoAccess.
func (s *Service) get(ctx context.Context, in userPath) (User, error) {
	return s.read(ctx, s.db, in.UserID, access.Read)
}

func (s *Service) read(ctx context.Context, q store.Querier, userID string, wanted access.Permission) (User, error) {
	u, err := userTable.Get(ctx, q, userID, wanted)
	return withRoles(ctx, q, u, err)
}

// getForUpdate reads a user whom the caller may update and compares If-Match with their ETag.
func (s *Service) getForUpdate(ctx context.Context, tx *store.Tx, userID string) (User, error) {
	u, err := s.read(ctx, tx, userID, access.Update)
	if err != nil {
		return User{}, err
	}
	if u.Erased() {
		return User{}, apierr.RecordErased
	}
	return u, endpoint.CheckMatch(ctx, u.ETag())
}

// update changes the display name and language of a user and, for administrators, the status. It ignores a status from
// other callers. It returns apierr.UserNotFound, apierr.NoAccess, apierr.DisplayNameReserved and apierr.LastAdministrator.
func (s *Service) update(ctx context.Context, in updateInput) (User, error) {
	caller := access.From(ctx)
	var u User
	if in.beyondLanguage(caller.UserID) && caller.SignedIn.MustEnrol(endpoint.Of(ctx).Now) {
		return User{}, apierr.FactorRequired
	}
	var rejection error
	err := s.db.InTx(ctx, func(tx *store.Tx) (err error) {
		rejection = nil
		if u, err = s.getForUpdate(ctx, tx, in.UserID); err != nil {
			return err
		}
		before := u
		if in.Language != nil {
			u.Language = *in.Language
		}
		if in.DisplayName != nil && in.displayName != u.DisplayName {
			if rejection, err = s.rename(ctx, tx, &u, in.displayName); err != nil || rejection != nil {
				return err
			}
		}
		if u.Language != before.Language || u.DisplayName != before.DisplayName {
			if err := s.save(ctx, tx, before, &u, "users.update"); err != nil {
				return err
			}
		}
		if in.Status == nil || *in.Status == u.Status || !caller.Administrator() {
			return nil
		}
		if *in.Status == Pending {
			return apierr.Invalid("status", "invalid.one_of", apierr.Args{"Values": Active + ", " + Disabled})
		}
		if err := endpoint.RequireAssurance(ctx, endpoint.SecondFactor); err != nil {
			return err
		}
		return s.changeStatus(ctx, tx, &u, *in.Status)
	})
	return u, cmp.Or(err, rejection)
}

// save writes a changed user.
func (s *Service) save(ctx context.Context, tx *store.Tx, before User, u *User, action string) error {
	return accountProof.Change(ctx, tx, action, u.ID, func() error {
		if u.DisplayName != before.DisplayName {
			if err := s.keepName(ctx, tx, u.ID, before.DisplayName); err != nil {
				return err
			}
		}
		u.ModifiedAt = tx.Now()
		changed, err := tx.Exec(ctx, updateUser, u.ID, u.Status, u.Language, u.ModifiedAt, records.Actor(ctx), before.version,
			u.DisplayName, types.SearchKey(u.DisplayName), types.NameSkeleton(u.DisplayName), types.SortKey(u.DisplayName))
		if err != nil {
			return err
		}
		if changed != 1 {
			return apierr.PreconditionFailed // changed by another request since
		}
		u.version++
		s.invalidate(tx, u.ID)
		return nil
	})
}

// changeStatus changes the status of a user. Activated users lose the role Registrant. All sessions of disabled users end. It
// returns apierr.LastAdministrator.
func (s *Service) changeStatus(ctx context.Context, tx *store.Tx, u *User, status string) error {
	if status == Disabled {
		if err := s.keepAdministrator(ctx, tx, *u); err != nil {
			return err
		}
	}
	before := *u
	u.Status = status
	if status == Active {
		if err := s.promote(ctx, tx, u); err != nil {
			return err
		}
	}
	if err := s.save(ctx, tx, before, u, "users.status"); err != nil {
		return err
	}
	s.changed(tx, u.ID)
	if status == Disabled {
		return s.auth.EndSessions(ctx, tx, u.ID, "")
	}
	return nil
}

// promote replaces the role Registrant by Customer.
func (s *Service) promote(ctx context.Context, tx *store.Tx, u *User) error {
	removed, err := tx.Exec(ctx, deleteUserRole, u.ID, access.Registrant)
	if err != nil || removed == 0 {
		return err
	}
	if _, err := tx.Exec(ctx, insertUserRole, u.ID, access.Customer, tx.Now(), records.Actor(ctx)); err != nil {
		return err
	}
	if err := userRolesProof.Audit(ctx, tx, actionUserRoles, u.ID, nil); err != nil {
		return err
	}
	u.Roles = []string{}
	*u, err = withRoles(ctx, tx, *u, nil)
	return err
}

// Records answers permission checks for users and credentials.
func (s *Service) Records() map[access.RecordType]access.Records {
	return map[access.RecordType]access.Records{
		access.Users:       records.Of(s.db, &userTable),
		access.Credentials: records.Of(s.db, &credentialTable),
	}
}

// Me is the caller's user. Only the user sees whether the password is the printed one.
type Me struct {
	User
	FactorRequiredBy *store.Time `json:"factor_required_by" doc:"By when the user must enrol a second factor, which a role requires; null otherwise."`
	PasswordPrinted  bool        `json:"password_printed,omitzero" doc:"True while the password is the one that the first start printed; missing otherwise."`
}

// ETag returns the validator of the record. There is none while the password is the printed one or a second factor is missing: a
// new password or factor changes the response and not the record.
func (m Me) ETag() string {
	if m.PasswordPrinted || m.FactorRequiredBy != nil {
		return ""
	}
	return m.User.ETag()
}

// me returns the caller's user.
func (s *Service) me(ctx context.Context, _ endpoint.None) (Me, error) {
	caller := access.From(ctx)
	userID := caller.UserID
	u, err := s.read(ctx, s.db, userID, access.Read)
	if err != nil {
		return Me{}, err
	}
	printed, err := s.auth.PasswordPrinted(ctx, s.db, userID)
	if err != nil {
		return Me{}, fmt.Errorf("read whether the password was printed: %w", err)
	}
	me := Me{User: u, PasswordPrinted: printed}
	if by := caller.SignedIn.EnrolBy; !by.IsZero() {
		at := store.TimeOf(by)
		me.FactorRequiredBy = &at
	}
	return me, nil
}

const (
	insertMark = `
		INSERT INTO former_marks (user_id, kind, digest, until) VALUES ($1, $2, $3, $4)
		ON CONFLICT (user_id, kind, digest) DO UPDATE SET until = excluded.until`

	selectMarks = `SELECT kind, digest FROM former_marks WHERE user_id = $1`

	selectNamesOf = `
		SELECT 'name', display_name FROM users WHERE id = $1 AND display_name <> ''
		UNION ALL
		SELECT CASE type WHEN 'username' THEN 'name' ELSE 'address' END, value FROM credentials WHERE user_id = $1 AND validated = TRUE`

	selectByMark = `SELECT user_id FROM former_marks WHERE digest = $1 AND kind = 'address'`

	selectByAddress = `SELECT user_id FROM credentials WHERE value_key = $1 AND type <> 'username' AND validated = TRUE`

	deleteMarks = `DELETE FROM former_marks WHERE user_id = $1`
)

// The kinds of marks.
const (
	markName    = "name"
	markAddress = "address"
)

// Marks returns the marks of a user: the display name, user names and validated addresses, also former ones.
func (s *Service) Marks(ctx context.Context, q store.Querier, userID string) (evidence.User, error) {
	var all evidence.User
	add := func(kind string, digests ...string) {
		for _, digest := range digests {
			if kind == markName {
				all.Names = append(all.Names, evidence.Claim(digest))
			} else {
				all.Addresses = append(all.Addresses, evidence.Validated(digest))
			}
		}
	}
	for _, statement := range []string{selectMarks, selectNamesOf} {
		rows, err := store.All(ctx, q, func(row store.Scanner) (pair [2]string, err error) {
			err = row.Scan(&pair[0], &pair[1])
			return pair, err
		}, statement, userID)
		if err != nil {
			return all, fmt.Errorf("read the marks of a user: %w", err)
		}
		for _, row := range rows {
			switch {
			case statement == selectMarks:
				add(row[0], row[1])
			case row[0] == markName:
				add(markName, records.NameMarks(s.db, row[1])...)
			default:
				add(markAddress, records.AddressMarks(s.db, row[1])...)
			}
		}
	}
	return all, nil
}

// WithAddress returns the users who have validated an address, and those who gave up one.
func (s *Service) WithAddress(ctx context.Context, q store.Querier, address evidence.Proven[string]) ([]string, error) {
	users, err := store.All(ctx, q, store.Text, selectByAddress, LoginKey(address.Value()))
	if err != nil {
		return nil, fmt.Errorf("find the users of an address: %w", err)
	}
	former, err := s.WithFormerAddress(ctx, q, evidence.Each(address, func(text string) []string { return records.AddressMarks(s.db, text) }))
	return append(users, former...), err
}

// WithFormerAddress returns the users who gave up an address with one of the digests.
func (s *Service) WithFormerAddress(ctx context.Context, q store.Querier, digests []evidence.Proven[string]) (users []string, err error) {
	for _, digest := range digests {
		former, err := store.All(ctx, q, store.Text, selectByMark, digest.Value())
		if err != nil {
			return nil, fmt.Errorf("find the former users of an address: %w", err)
		}
		users = append(users, former...)
	}
	return users, nil
}

// customers is implemented by the module customers.
type customers interface {
	// AddressGivenUp keeps that customers with an address belong to the user who gives it up.
	AddressGivenUp(ctx context.Context, tx *store.Tx, userID string, address evidence.Proven[string]) error
}

// keepName stores the mark of a former name of a user.
func (s *Service) keepName(ctx context.Context, tx *store.Tx, userID, name string) error {
	if name == "" {
		return nil
	}
	return keepMark(ctx, tx, userID, markName, records.NameMark(s.db, name))
}

// keepCredential stores the mark of a validated credential that a user gives up.
func (s *Service) keepCredential(ctx context.Context, tx *store.Tx, c Credential) error {
	switch {
	case !c.Validated:
		return nil
	case c.Type == Username:
		return s.keepName(ctx, tx, c.UserID, c.Value)
	}
	if s.Peers.Customers != nil {
		if err := s.Peers.Customers.AddressGivenUp(ctx, tx, c.UserID, evidence.Validated(c.Value)); err != nil {
			return err
		}
	}
	return keepMark(ctx, tx, c.UserID, markAddress, records.AddressMark(s.db, c.Value))
}

func keepMark(ctx context.Context, tx *store.Tx, userID, kind, digest string) error {
	return tx.Run(ctx, insertMark, userID, kind, digest, tx.Now())
}
