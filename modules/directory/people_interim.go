package directory

import (
	"context"

	"kontor/server/endpoint"
	"kontor/store"
)

// People returns the persons behind ids.
func (s *Service) People(ctx context.Context, ids []string) (map[string]endpoint.Person, error) {
	people := map[string]endpoint.Person{}
	rows, err := s.db.Query(ctx, `SELECT u.id, u.display_name, COALESCE((SELECT c.value FROM credentials c WHERE c.user_id = u.id ORDER BY c.created_at, c.id LIMIT 1), '')
		FROM users u WHERE u.id IN (`+store.In(1, len(ids))+`)`, store.AppendIn(nil, ids)...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var id string
		var p endpoint.Person
		if err := rows.Scan(&id, &p.DisplayName, &p.UserName); err != nil {
			return nil, err
		}
		people[id] = p
	}
	return people, rows.Err()
}
