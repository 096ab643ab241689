package personas_test

import (
	"fmt"
	"testing"

	"kontor/modules/bank/personas"
	"kontor/server/access"
	"kontor/server/servertest"
)

func BenchmarkGet(b *testing.B) {
	s := servertest.Start(b)
	servertest.RatioOfGets(b, s.User(access.Advisor), "/v1/personas/", s.Fill(10_000, personas.Fill))
}

func BenchmarkList(b *testing.B) {
	for _, stored := range []int{1_000, 100_000} {
		b.Run(fmt.Sprint(stored), func(b *testing.B) {
			s := servertest.Start(b)
			s.Fill(stored, personas.Fill)
			request := s.User(access.Advisor).Request("GET", "/v1/personas?search.active=true&sort=-created_at&limit=10", "")
			servertest.Ratio(b, s.Address, 5_000, 200, func(int) []byte { return request })
		})
	}
}
