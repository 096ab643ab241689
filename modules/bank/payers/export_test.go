package payers

import (
	"context"
	"fmt"

	"kontor/store"
)

// Fill stores n payers of a customer whose countries rotate, for benchmarks.
func Fill(ctx context.Context, tx *store.Tx, customerID string, n int) ([]string, error) {
	countries := []string{"CHE", "DEU", "FRA", "ITA", "LIE"}
	email, name := "vreni@example.ch", "Vreni"
	var ids []string
	for i := range n {
		company := fmt.Sprintf("Muster %d AG", i)
		p := Payer{ID: store.NewID(), CustomerID: customerID, Email: &email, Name: &name, Company: &company, Country: &countries[i%len(countries)],
			Active: true, Metadata: []byte("{}"), CreatedAt: tx.Now(), CreatedBy: store.NilID, ModifiedAt: tx.Now(), ModifiedBy: store.NilID, Version: 1}
		if err := payers.Insert(ctx, tx, p); err != nil {
			return nil, err
		}
		ids = append(ids, p.ID)
	}
	return ids, nil
}
