package customers_test

import (
	"context"
	"fmt"
	"testing"

	"kontor/modules/customers"
	"kontor/server/access"
	"kontor/server/servertest"
	"kontor/store"
)

// fill stores n customers in groups and gives their ids.
func fill(b *testing.B, s *servertest.Server, n int) []string {
	b.Helper()
	ids := make([]string, 0, n)
	const group = 1000
	for len(ids) < n {
		err := s.DB.InTx(context.Background(), func(tx *store.Tx) error {
			made, err := customers.Fill(context.Background(), tx, min(group, n-len(ids)))
			ids = append(ids, made...)
			return err
		})
		if err != nil {
			b.Fatal(err)
		}
	}
	return ids
}

// advisor gives a caller who goes through the grants of a role.
func advisor(s *servertest.Server) []string {
	return []string{"Authorization", "Bearer " + s.User(access.Advisor).Token}
}

func BenchmarkGet(b *testing.B) {
	s := servertest.Start(b)
	ids, headers := fill(b, s, 10_000), advisor(s)
	requests := make([][]byte, len(ids))
	for i, id := range ids {
		requests[i] = servertest.Request("GET", "/v1/customers/"+id, "", headers...)
	}
	servertest.Ratio(b, s.Address, 20_000, 200, func(i int) []byte { return requests[(i+len(requests))%len(requests)] })
}

func BenchmarkList(b *testing.B) {
	for _, stored := range []int{1_000, 100_000} {
		b.Run(fmt.Sprint(stored), func(b *testing.B) {
			s := servertest.Start(b)
			fill(b, s, stored)
			request := servertest.Request("GET", "/v1/customers?search.kyc_status=verified&sort=-created_at&limit=10", "", advisor(s)...)
			servertest.Ratio(b, s.Address, 5_000, 200, func(int) []byte { return request })
		})
	}
}

func BenchmarkCreate(b *testing.B) {
	s := servertest.Start(b)
	headers := advisor(s)
	before := s.DB.Stats()
	servertest.Ratio(b, s.Address, 10_000, 201, func(i int) []byte {
		body := fmt.Sprintf(`{"first_name":"A%d","last_name":"B","date_of_birth":"1990-01-01","email":"x%d@example.com"}`, i, i)
		return servertest.Request("POST", "/v1/customers", body, headers...)
	})
	after := s.DB.Stats()
	b.ReportMetric(float64(after.Commits-before.Commits)/float64(after.Writes-before.Writes), "syncs/write")
}
