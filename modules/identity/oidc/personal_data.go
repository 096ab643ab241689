package oidc

import (
	"context"

	"kontor/modules/kit/personal"
	"kontor/server/access"
	"kontor/store"
)

// PersonalData lists the tables of the module.
func (s *Service) PersonalData() []personal.Table {
	return []personal.Table{
		{Name: "identities", Holds: "the accounts of a user at the provider, with the e-mail address at the time of linking", Sections: []string{"identities"}},
		{Name: "oidc_codes", Holds: "what the provider has stated about a user, for minutes", Unexported: "It lives for minutes, within one sign-in."},
		{Name: "oidc_states", Why: "It holds hashes of random values, for minutes."},
	}
}

const selectIdentityIDs = `SELECT id FROM identities WHERE user_id = $1 AND id > $2 ORDER BY id LIMIT $3`

// PersonalSections declares the accounts of a user at the provider.
func (s *Service) PersonalSections() []personal.Section {
	return []personal.Section{
		personal.Records(personal.About{Name: "identities", Kind: personal.User, Endpoint: "GET /v1/users/{id}/identities"},
			personal.Of[Identity]{Table: &identityTable, All: access.Read, Condition: "identities.user_id = $2"}),
	}
}

// ErasePerson deletes the accounts of a user at the provider, and pending sign-ins.
func (s *Service) ErasePerson(ctx context.Context, tx *store.Tx, subject personal.Subject, cursor string) (string, error) {
	if subject.Kind != personal.User {
		return "", nil
	}
	return personal.Run(ctx, tx, cursor,
		personal.Once(func(ctx context.Context, tx *store.Tx) error {
			_, err := tx.Exec(ctx, deleteCodesOf, subject.ID)
			return err
		}),
		personal.EachID(selectIdentityIDs, subject.ID, func(ctx context.Context, tx *store.Tx, id string) error {
			before, err := readIdentity(ctx, tx, id)
			if err != nil {
				return err
			}
			if _, err := tx.Exec(ctx, deleteIdentityRow, id); err != nil {
				return err
			}
			return identityProof.Audit(ctx, tx, personal.Action, id, before)
		}))
}
