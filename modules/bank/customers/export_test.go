package customers

import (
	"context"
	"fmt"
	"net/url"
	"testing"

	"kontor/modules/kit/list"
	"kontor/modules/kit/personal"
	"kontor/server/apierr"
	"kontor/store"
)

// Fill stores n customers whose states rotate, for benchmarks.
func Fill(ctx context.Context, tx *store.Tx, n int) ([]string, error) {
	states := []Status{NotStarted, Pending, InReview, Verified, Rejected}
	var ids []string
	for i := range n {
		c := Customer{ID: store.NewID(), Type: Individual, FirstName: "Vreni", LastName: fmt.Sprintf("Muster %d", i),
			Email: fmt.Sprintf("vreni%d@example.ch", i), KYCStatus: states[i%len(states)], VerificationLevel: LevelNone,
			Metadata: []byte("{}"), CreatedAt: tx.Now(), UpdatedAt: tx.Now(), createdBy: store.NilID, version: 1}
		keys := c.searchKeys()
		if err := insertCustomer(ctx, tx, &c, &keys); err != nil {
			return nil, err
		}
		ids = append(ids, c.ID)
	}
	return ids, nil
}

// EraseForTest erases a customer.
func (s *Service) EraseForTest(ctx context.Context, id string) error {
	return s.db.InTx(ctx, func(tx *store.Tx) error {
		_, err := s.ErasePerson(ctx, tx, personal.Subject{Kind: personal.Customer, ID: id}, "")
		return err
	})
}

// KnowsForTest reports whether the answer with a customer is in memory.
func (s *Service) KnowsForTest(id string) bool { return s.cached.Remembers(id) }

// ListInputForTest returns the input of the list for a query.
func (s *Service) ListInputForTest(t *testing.T, query string) (in ListInput) {
	t.Helper()
	values, err := url.ParseQuery(query)
	if err != nil {
		t.Fatal(err)
	}
	var problems apierr.Fields
	in.Query.BindQuery(values, &problems)
	in.Text = list.Words(values.Get("q"))
	if err := problems.Err(); err != nil {
		t.Fatal(err)
	}
	return in
}
