package serviceaccounts

import (
	"context"
	"fmt"
	"hash/fnv"

	"kontor/modules/kit/list"
	"kontor/modules/kit/records"
	"kontor/server/access"
	"kontor/server/endpoint"
	"kontor/store"
)

// The states of an account, which are those of its user.
const (
	active   = "active"
	disabled = "disabled"

	actionCreate = "service_accounts.create"
	actionUpdate = "service_accounts.update"
)

// Account is a service account.
type Account struct {
	ID          string     `json:"id" doc:"The id of its user: roles and grants are given to this id."`
	Name        string     `json:"name" maxLength:"100" example:"Back office" doc:"The display name of its user."`
	Description string     `json:"description" maxLength:"500" example:"Reads customers every night."`
	Status      string     `json:"status" enum:"active,disabled"`
	Roles       []string   `json:"roles" example:"Advisor" doc:"Names, in alphabetical order."`
	CreatedAt   store.Time `json:"created_at"`
	CreatedBy   string     `json:"created_by"`
	ModifiedAt  store.Time `json:"modified_at"`
	ModifiedBy  string     `json:"modified_by"`

	version int64
}

// EachUser names the account, its creator and its last editor.
func (a Account) EachUser(add func(id string)) {
	add(a.ID)
	add(a.CreatedBy)
	add(a.ModifiedBy)
}

// ETag returns the validator of the record. It covers what belongs to the user: name, status and roles.
func (a Account) ETag() string {
	h := fnv.New32a()
	fmt.Fprintf(h, "%q %q %q", a.Name, a.Status, a.Roles)
	return fmt.Sprintf("%d-%08x", a.version, h.Sum32())
}

// Create creates an account with roles. It returns apierr.InvalidInput for unknown roles and apierr.GrantNotHeld.
func (s *Service) Create(ctx context.Context, in CreateInput) (Account, error) {
	var a Account
	err := s.db.InTx(ctx, func(tx *store.Tx) error {
		id, err := s.users.Create(ctx, tx, in.Name, in.Roles)
		if err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, insertAccount, id, in.Description, tx.Now(), records.Actor(ctx)); err != nil {
			return fmt.Errorf("store a service account: %w", err)
		}
		if err := accountProof.Audit(ctx, tx, actionCreate, id, nil); err != nil {
			return err
		}
		if a, err = read(ctx, tx, id, access.None); err == nil {
			tx.Respond(a)
		}
		return err
	})
	return a, err
}

// read reads an account with its roles for a caller with a permission, or unchecked for access.None.
func read(ctx context.Context, q store.Querier, id string, wanted access.Permission) (a Account, err error) {
	if wanted == access.None {
		a, err = accountTable.GetUnchecked(ctx, q, id)
	} else {
		a, err = accountTable.Get(ctx, q, id, wanted)
	}
	if err != nil {
		return Account{}, err
	}
	one := []Account{a}
	err = fillRoles(ctx, q, one)
	return one[0], err
}

// Get reads an account. It returns apierr.ServiceAccountNotFound and apierr.NoAccess.
func (s *Service) Get(ctx context.Context, id string) (Account, error) {
	return read(ctx, s.db, id, access.Read)
}

// List lists the accounts that the caller may read.
func (s *Service) List(ctx context.Context, query list.Params) (list.Page[Account], error) {
	page, err := accountList.Page(ctx, s.db, query, accountTable.Visible(access.From(ctx)))
	if err != nil {
		return page, err
	}
	return page, fillRoles(ctx, s.db, page.Data.Rows)
}

// Update changes name, description and status. Tokens of a disabled account are refused; they are valid again when it is active
// again, unless they were revoked. It returns apierr.ServiceAccountNotFound, apierr.NoAccess, apierr.RecordErased and
// apierr.PreconditionFailed.
func (s *Service) Update(ctx context.Context, in UpdateInput) (Account, error) {
	var a Account
	err := s.db.InTx(ctx, func(tx *store.Tx) (err error) {
		if a, err = s.getForChange(ctx, tx, in.ID, access.Update); err != nil {
			return err
		}
		if err := s.users.Change(ctx, tx, in.ID, in.Name, in.Status); err != nil {
			return err
		}
		if in.Description != nil && *in.Description != a.Description {
			if err := s.setDescription(ctx, tx, in.ID, *in.Description); err != nil {
				return err
			}
		}
		a, err = read(ctx, tx, in.ID, access.None)
		return err
	})
	return a, err
}

func (s *Service) setDescription(ctx context.Context, tx *store.Tx, id, description string) error {
	was, err := readAccount(ctx, tx, id)
	if err != nil {
		return err
	}
	if _, err := tx.Exec(ctx, updateDescription, id, description, tx.Now(), records.Actor(ctx)); err != nil {
		return err
	}
	return accountProof.Audit(ctx, tx, actionUpdate, id, was)
}

// getForChange reads an account for a caller with a permission, and compares If-Match.
func (s *Service) getForChange(ctx context.Context, tx *store.Tx, id string, wanted access.Permission) (Account, error) {
	a, err := read(ctx, tx, id, wanted)
	if err != nil {
		return a, err
	}
	return a, endpoint.CheckMatch(ctx, a.ETag())
}

// Disable disables an account and revokes all of its tokens. Disabling it again changes nothing. It returns
// apierr.ServiceAccountNotFound, apierr.NoAccess, apierr.RecordErased and apierr.PreconditionFailed.
func (s *Service) Disable(ctx context.Context, id string) error {
	return s.db.InTx(ctx, func(tx *store.Tx) error {
		if _, err := s.getForChange(ctx, tx, id, access.Delete); err != nil {
			return err
		}
		tokens, err := selectTexts(ctx, tx, selectLive, id)
		if err != nil {
			return err
		}
		for _, token := range tokens {
			if err := s.revoke(ctx, tx, id, token); err != nil {
				return err
			}
		}
		status := disabled
		return s.users.Change(ctx, tx, id, nil, &status)
	})
}

// CheckMayActAs checks that the caller may have done what a service account may do: [Service.Issue] would give them a token of it. It
// returns apierr.ServiceAccountNotFound, apierr.NoAccess and apierr.GrantNotHeld.
func (s *Service) CheckMayActAs(ctx context.Context, tx *store.Tx, id string) error {
	if _, err := accountTable.Get(ctx, tx, id, access.Update); err != nil {
		return err
	}
	return s.CheckHolds(ctx, tx, id)
}
