package personas

import (
	"context"
	"fmt"

	"kontor/modules/kit/types"
	"kontor/store"
)

// Fill stores n personas whose nationalities rotate, for benchmarks.
func Fill(ctx context.Context, tx *store.Tx, n int) ([]string, error) {
	nationalities := []string{"CHE", "DEU", "FRA", "ITA", "LIE"}
	born, err := types.ParseDate("1990-01-31")
	if err != nil {
		return nil, err
	}
	var ids []string
	for i := range n {
		p := Persona{ID: store.NewID(), FirstName: "Vreni", LastName: fmt.Sprintf("Muster %d", i), DateOfBirth: born,
			Nationality: &nationalities[i%len(nationalities)], Active: i%len(nationalities) == 0, Metadata: []byte("{}"),
			CreatedAt: tx.Now(), CreatedBy: store.NilID, ModifiedAt: tx.Now(), ModifiedBy: store.NilID, Version: 1}
		if err := personas.Insert(ctx, tx, p); err != nil {
			return nil, err
		}
		ids = append(ids, p.ID)
	}
	return ids, nil
}
