package payers_test

import (
	"context"
	"fmt"
	"testing"

	"kontor/modules/bank/payers"
	"kontor/server/access"
	"kontor/server/servertest"
	"kontor/store"
)

// fill stores n payers of one customer and gives their ids.
func fill(b *testing.B, s *servertest.Server, n int) []string {
	b.Helper()
	customer := newCustomer(s.Admin())
	return s.Fill(n, func(ctx context.Context, tx *store.Tx, n int) ([]string, error) {
		return payers.Fill(ctx, tx, customer, n)
	})
}

func BenchmarkGet(b *testing.B) {
	s := servertest.Start(b)
	servertest.RatioOfGets(b, s.User(access.Advisor), "/v1/payers/", fill(b, s, 10_000))
}

func BenchmarkList(b *testing.B) {
	for _, stored := range []int{1_000, 100_000} {
		b.Run(fmt.Sprint(stored), func(b *testing.B) {
			s := servertest.Start(b)
			fill(b, s, stored)
			request := s.User(access.Advisor).Request("GET", "/v1/payers?country=CHE&limit=10", "")
			servertest.Ratio(b, s.Address, 5_000, 200, func(int) []byte { return request })
		})
	}
}
