package directory

import (
	"context"
	"errors"

	"kontor/modules/kit/types"
	"kontor/server/access"
	"kontor/store"
)

const (
	selectSubject = `SELECT id FROM users WHERE id = $1 AND kind = $2 AND status = 'active'`

	selectSubjectByName = `
		SELECT u.id FROM credentials c JOIN users u ON u.id = c.user_id
		WHERE c.value_key = $1 AND c.type = 'username' AND c.validated = TRUE AND u.kind = $2 AND u.status = 'active'`

	selectUserNames = `
		SELECT user_id, value FROM credentials
		WHERE user_id IN (%s) AND type = 'username' AND validated = TRUE ORDER BY created_at, id`
)

// FindSubject returns the active user of a kind with their roles, by id or by one of their user names. ok is false for any other text.
func (s *Service) FindSubject(ctx context.Context, q store.Querier, kind, ref string) (caller *access.Caller, ok bool, err error) {
	statement, key := selectSubjectByName, ""
	if id, err := types.ParseID(ref); err == nil {
		statement, key = selectSubject, id
	} else if name, err := parseIdentifier(Username, ref); err == nil {
		key = name.key
	} else {
		return nil, false, nil
	}
	var id string
	err = q.QueryRow(ctx, statement, key, kind).Scan(&id)
	if errors.Is(err, store.ErrNotFound) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, err
	}
	roles, err := s.RolesOf(ctx, q, id)
	return &access.Caller{UserID: id, Roles: roles}, err == nil, err
}

// UserNames returns the oldest user name of each user who has one, by id.
func (s *Service) UserNames(ctx context.Context, q store.Querier, ids []string) (map[string]string, error) {
	names := map[string]string{}
	err := eachByID(ctx, q, selectUserNames, ids, func(rows *store.Rows) error {
		var id, name string
		if err := rows.Scan(&id, &name); err != nil {
			return err
		}
		if names[id] == "" {
			names[id] = name
		}
		return nil
	})
	return names, err
}
