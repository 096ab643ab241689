package customers

import (
	"context"
	"fmt"

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
