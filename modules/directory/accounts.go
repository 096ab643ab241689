package directory

import (
	"context"

	"kontor/modules/kit/list"
	"kontor/modules/kit/records"
	"kontor/server/access"
	"kontor/server/apierr"
	"kontor/server/endpoint"
	"kontor/store"
)

// list lists the users that the caller may read.
func (s *Service) list(ctx context.Context, in listInput) (list.Page[User], error) {
	page, err := userList.Page(ctx, s.db, in.Query, accounts.Visible(access.From(ctx)))
	if err != nil {
		return page, err
	}
	return page, fillRoles(ctx, s.db, page.Data.Rows)
}

// get reads a user. It returns apierr.UserNotFound and apierr.NoAccess.
func (s *Service) get(ctx context.Context, in userPath) (User, error) {
	return s.read(ctx, s.db, in.UserID, access.Read)
}

func (s *Service) read(ctx context.Context, q store.Querier, userID string, wanted access.Permission) (User, error) {
	u, err := accounts.Get(ctx, q, userID, wanted)
	return withRoles(ctx, q, u, err)
}

// forChange reads a user who is about to be changed and compares If-Match with him.
func (s *Service) forChange(ctx context.Context, tx *store.Tx, userID string) (User, error) {
	u, err := s.read(ctx, tx, userID, access.Update)
	if err != nil {
		return User{}, err
	}
	return u, endpoint.CheckMatch(ctx, u.ETag())
}

// update changes the language of a user and, for administrators, his status; from others a status is passed over. It
// returns apierr.UserNotFound, apierr.NoAccess and apierr.LastAdministrator.
func (s *Service) update(ctx context.Context, in updateInput) (User, error) {
	caller := access.From(ctx)
	var u User
	err := s.db.InTx(ctx, func(tx *store.Tx) (err error) {
		if u, err = s.forChange(ctx, tx, in.UserID); err != nil {
			return err
		}
		if in.Language != nil && *in.Language != u.Language {
			before := u
			u.Language = *in.Language
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
		return s.changeStatus(ctx, tx, &u, *in.Status)
	})
	return u, err
}

// save stores a changed user.
func (s *Service) save(ctx context.Context, tx *store.Tx, before User, u *User, action string) error {
	was, err := readAccount(ctx, tx, u.ID)
	if err != nil {
		return err
	}
	u.ModifiedAt = tx.Now()
	changed, err := tx.Exec(ctx, updateUser, u.ID, u.Status, u.Language, u.ModifiedAt, records.Actor(ctx), before.version)
	if err != nil {
		return err
	}
	if changed != 1 {
		return apierr.PreconditionFailed // somebody else changed him since he was read
	}
	u.version++
	return accountProof.Audit(ctx, tx, action, u.ID, was)
}

// changeStatus moves a user to another state. Who becomes active is no registrant any more; who is disabled is signed
// out everywhere. It returns apierr.LastAdministrator.
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
	s.auth.Changed(tx, u.ID)
	if status == Disabled {
		return s.auth.EndSessions(ctx, tx, u.ID, "")
	}
	return nil
}

// promote makes a customer of a registrant.
func (s *Service) promote(ctx context.Context, tx *store.Tx, u *User) error {
	removed, err := tx.Exec(ctx, deleteUserRole, u.ID, access.Registrant)
	if err != nil || removed == 0 {
		return err
	}
	if _, err := tx.Exec(ctx, insertUserRole, u.ID, access.Customer, tx.Now(), records.Actor(ctx)); err != nil {
		return err
	}
	if err := records.UserRoles.Audit(ctx, tx, records.ActionUserRoles, u.ID, nil); err != nil {
		return err
	}
	u.Roles = []string{}
	*u, err = withRoles(ctx, tx, *u, nil)
	return err
}

// Records answers permission checks for users and credentials.
func (s *Service) Records() map[access.RecordType]access.Records {
	return map[access.RecordType]access.Records{
		access.Users: standings(func(ctx context.Context, userID string, ids []string) (map[string]access.Standing, error) {
			return accounts.Standings(ctx, s.db, userID, ids)
		}),
		access.Credentials: standings(func(ctx context.Context, userID string, ids []string) (map[string]access.Standing, error) {
			return held.Standings(ctx, s.db, userID, ids)
		}),
	}
}

type standings func(ctx context.Context, userID string, ids []string) (map[string]access.Standing, error)

// Standings tells what the user is to each of the records.
func (f standings) Standings(ctx context.Context, userID string, ids []string) (map[string]access.Standing, error) {
	return f(ctx, userID, ids)
}
