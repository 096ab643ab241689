package factors

import (
	"context"

	"kontor/modules/kit/personal"
	"kontor/server/access"
	"kontor/store"
)

// PersonalData lists the tables of the module.
func (s *Service) PersonalData() []personal.Table {
	return []personal.Table{
		{Name: "factors", Holds: "names, types and keys of the second factors of a user; keys and secrets are not exported", Sections: []string{"factors"}},
		{Name: "recovery_codes", Holds: "hashes of recovery codes; they are not exported", Unexported: "A hash of a secret must not leave the system."},
	}
}

const (
	selectFactorIDs = `SELECT id FROM factors WHERE user_id = $1 AND id > $2 ORDER BY id LIMIT $3`
)

// PersonalSections declares the second factors of a user.
func (s *Service) PersonalSections() []personal.Section {
	return []personal.Section{
		personal.Records(personal.About{Name: "factors", Kind: personal.User, Endpoint: "GET /v1/users/{id}/factors"}, personal.Of[Factor]{
			Table: table, All: access.Read, Condition: "factors.user_id = $2",
			Current: func(f Factor, now store.Time) bool {
				return f.Status == active || f.CreatedAt > now.Add(-enrolmentLife)
			},
		}),
	}
}

// ErasePerson deletes the second factors of a user.
func (s *Service) ErasePerson(ctx context.Context, tx *store.Tx, subject personal.Subject, cursor string) (string, error) {
	if subject.Kind != personal.User {
		return "", nil
	}
	return personal.Run(ctx, tx, cursor, personal.EachID(selectFactorIDs, subject.ID, func(ctx context.Context, tx *store.Tx, id string) error {
		before, err := readFactor(ctx, tx, id)
		if err != nil {
			return err
		}
		for _, statement := range []string{deleteCodes, deleteFactor} {
			if _, err := tx.Exec(ctx, statement, id); err != nil {
				return err
			}
		}
		return audit(ctx, tx, personal.Action, personal.Actor(ctx), id, before)
	}))
}
