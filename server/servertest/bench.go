package servertest

import (
	"context"
	"testing"

	"kontor/store"
)

// Fill stores n records by SQL, in groups, and returns their ids.
func (s *Server) Fill(n int, insert func(ctx context.Context, tx *store.Tx, n int) ([]string, error)) []string {
	s.t.Helper()
	const group = 1000
	ids := make([]string, 0, n)
	for len(ids) < n {
		err := s.DB.InTx(s.t.Context(), func(tx *store.Tx) error {
			made, err := insert(s.t.Context(), tx, min(group, n-len(ids)))
			ids = append(ids, made...)
			return err
		})
		if err != nil {
			s.t.Fatal(err)
		}
	}
	return ids
}

// Request returns the bytes of a request of the client, for [Load].
func (c *Client) Request(method, path, body string) []byte {
	return Request(method, path, body, append([]string{"Authorization", "Bearer " + c.Token}, c.Headers...)...)
}

// RatioOfGets measures reads of single records with [Ratio].
func RatioOfGets(b *testing.B, c *Client, path string, ids []string) {
	b.Helper()
	requests := make([][]byte, len(ids))
	for i, id := range ids {
		requests[i] = c.Request("GET", path+id, "")
	}
	Ratio(b, c.address, 20_000, 200, func(i int) []byte { return requests[(i+len(requests))%len(requests)] })
}
