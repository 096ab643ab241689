package customers_test

import (
	"fmt"
	"testing"

	"kontor/modules/customers"
	"kontor/server/access"
	"kontor/server/servertest"
)

func BenchmarkGet(b *testing.B) {
	s := servertest.Start(b)
	servertest.RatioOfGets(b, s.User(access.Advisor), "/v1/customers/", s.Fill(10_000, customers.Fill))
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
