package customers_test

import (
	"fmt"
	"testing"

	"kontor/modules/bank/customers"
	"kontor/server/access"
	"kontor/server/servertest"
)

func BenchmarkGet(b *testing.B) {
	s := servertest.Start(b)
	servertest.RatioOfGets(b, s.User(access.Advisor), "/v1/customers/", s.Fill(10_000, customers.Fill))
}

// BenchmarkGetKnown reads customers that were read before.
func BenchmarkGetKnown(b *testing.B) {
	s := servertest.Start(b)
	servertest.RatioOfGets(b, s.User(access.Advisor), "/v1/customers/", s.Fill(2_000, customers.Fill))
}

func BenchmarkList(b *testing.B) {
	for _, stored := range []int{1_000, 100_000} {
		b.Run(fmt.Sprint(stored), func(b *testing.B) {
			s := servertest.Start(b)
			s.Fill(stored, customers.Fill)
			request := s.User(access.Advisor).Request("GET", "/v1/customers?search.kyc_status=verified&sort=-created_at&limit=10", "")
			servertest.Ratio(b, s.Address, 5_000, 200, func(int) []byte { return request })
		})
	}
}

func BenchmarkCreate(b *testing.B) {
	s := servertest.Start(b)
	advisor := s.User(access.Advisor)
	before := s.DB.Stats()
	servertest.Ratio(b, s.Address, 10_000, 201, func(i int) []byte {
		body := fmt.Sprintf(`{"first_name":"A%d","last_name":"B","date_of_birth":"1990-01-01","email":"x%d@example.com"}`, i, i)
		return advisor.Request("POST", "/v1/customers", body)
	})
	after := s.DB.Stats()
	b.ReportMetric(float64(after.Commits-before.Commits)/float64(after.Writes-before.Writes), "syncs/write")
}

// BenchmarkListBesideWrites compares a list while nothing is written with the same list while 200 customers a second are created. The
// new customers match the pattern; a page of others that do is full before.
func BenchmarkListBesideWrites(b *testing.B) {
	for _, stored := range []int{100_000, 1_000_000} {
		b.Run(fmt.Sprint(stored), func(b *testing.B) {
			s := servertest.Start(b)
			s.Fill(stored, customers.Fill)
			advisor := s.User(access.Advisor)
			create := func(i int) []byte {
				return advisor.Request("POST", "/v1/customers", fmt.Sprintf(`{"first_name":"A%d","last_name":"B","date_of_birth":"1990-01-01","email":"x%d@example.com"}`, i, i))
			}
			servertest.Load(b, s.Address, 20, 201, func(i int) []byte { return create(-1 - i) })
			for _, list := range []struct{ name, query string }{
				{"all", "limit=10"}, {"status", "search.kyc_status=verified&limit=10"}, {"name", "search.last_name=*b*&limit=10"},
			} {
				b.Run(list.name, func(b *testing.B) {
					servertest.BesideWrites(b, s, 10_000, advisor.Request("GET", "/v1/customers?"+list.query, ""), 201, create)
				})
			}
		})
	}
}
