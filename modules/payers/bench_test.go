package payers_test

import (
	"context"
	"fmt"
	"testing"

	"kontor/modules/payers"
	"kontor/server/access"
	"kontor/server/servertest"
	"kontor/store"
)

// fill stores n payers in groups and gives their ids.
func fill(b *testing.B, s *servertest.Server, n int) []string {
	b.Helper()
	made := s.Admin().Do("POST", "/v1/customers", map[string]any{"first_name": "Ada", "last_name": "Muster", "email": "ada@example.ch"}).Expect(b, 201)
	customer := made.JSON(b)["id"].(string)
	ids := make([]string, 0, n)
	const group = 1000
	for len(ids) < n {
		err := s.DB.InTx(context.Background(), func(tx *store.Tx) error {
			made, err := payers.Fill(context.Background(), tx, customer, min(group, n-len(ids)))
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
		requests[i] = servertest.Request("GET", "/v1/payers/"+id, "", headers...)
	}
	servertest.Ratio(b, s.Address, 20_000, 200, func(i int) []byte { return requests[(i+len(requests))%len(requests)] })
}

func BenchmarkList(b *testing.B) {
	for _, stored := range []int{1_000, 100_000} {
		b.Run(fmt.Sprint(stored), func(b *testing.B) {
			s := servertest.Start(b)
			fill(b, s, stored)
			request := servertest.Request("GET", "/v1/payers?country=CHE&limit=10", "", advisor(s)...)
			servertest.Ratio(b, s.Address, 5_000, 200, func(int) []byte { return request })
		})
	}
}
