package authzen_test

import (
	"context"
	"fmt"
	"testing"

	"kontor/modules/identity/directory"
	"kontor/server/access"
	"kontor/server/servertest"
	"kontor/store"
)

// million stores grants on records of another application and of Kontor: half a million each, of one user.
func million(b *testing.B) (s *servertest.Server) {
	b.Helper()
	s = servertest.Start(b, atBank)
	s.SkipRecordCheck()
	s.Admin().Create("/v1/rbac/record-types", json{"name": "record", "permissions": []string{"read", "write"}})
	u, err := s.Users.Create(access.With(context.Background(), &access.Caller{UserID: store.NilID}),
		directory.NewUser{Value: "alice", Password: servertest.Password, Roles: []string{access.Customer}})
	if err != nil {
		b.Fatal(err)
	}
	s.Fill(500_000, func(ctx context.Context, tx *store.Tx, n int) (ids []string, err error) {
		for range n {
			id := store.NewID()
			for table, recType := range map[string]string{"external_grants": "record", "grants": "personas"} {
				if _, err := tx.Exec(ctx, `INSERT INTO `+table+` (id, principal_kind, principal_id, rec_type, permission, rec_id, created_at, created_by)
					VALUES ($1, 'user', $2, $3, 'read', $4, 0, $2)`, store.NewID(), u.ID, recType, id); err != nil {
					return nil, err
				}
			}
			if _, err := tx.Exec(ctx, `
				INSERT INTO personas (id, first_name, first_name_key, last_name, last_name_key, date_of_birth, active, metadata,
					created_at, created_by, modified_at, modified_by, version)
				VALUES ($1, 'Ada', 'ada', 'Muster', 'muster', '1990-01-31', TRUE, '{}', 0, $2, 0, $2, 1)`, id, s.Admin().UserID); err != nil {
				return nil, err
			}
			ids = append(ids, id)
		}
		return ids, nil
	})
	return s
}

// BenchmarkMillionGrants measures evaluations, and pages of 100 resources, with a million grants.
func BenchmarkMillionGrants(b *testing.B) {
	s := million(b)
	for _, recType := range []string{"record", "personas"} {
		search := fmt.Sprintf(`{"subject": {"type": "user", "id": "alice"}, "action": {"name": "read"}, "resource": {"type": %q}, "page": {"limit": 100}}`, recType)
		answer := s.Admin().Do("POST", "/access/v1/search/resource", search)
		var page struct {
			Results []struct{ ID string }
			Page    struct {
				NextToken string `json:"next_token"`
			}
		}
		answer.Into(b, &page)
		if len(page.Results) != 100 {
			b.Fatalf("%d results: %s", len(page.Results), answer.Body)
		}
		next := fmt.Sprintf(`{"subject": {"type": "user", "id": "alice"}, "action": {"name": "read"}, "resource": {"type": %q}, "page": {"token": %q}}`,
			recType, page.Page.NextToken)
		evaluation := fmt.Sprintf(`{"subject": {"type": "user", "id": "alice"}, "action": {"name": "read"}, "resource": {"type": %q, "id": %q}}`,
			recType, page.Results[50].ID)
		for name, request := range map[string][]byte{
			"evaluation of " + recType:     s.Admin().Request("POST", "/access/v1/evaluation", evaluation),
			"page of resources " + recType: s.Admin().Request("POST", "/access/v1/search/resource", next),
		} {
			b.Run(name, func(b *testing.B) {
				before := servertest.ProcessorTime(b)
				n := 0
				for b.Loop() {
					servertest.Load(b, s.Address, 100, 200, func(int) []byte { return request })
					n += 100
				}
				b.ReportMetric((servertest.ProcessorTime(b)-before).Seconds()*1000/float64(n), "cpu-ms/request")
			})
		}
	}
}
