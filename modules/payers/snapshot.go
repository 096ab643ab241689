package payers

import (
	"context"

	"kontor/modules/kit/records"
	"kontor/modules/kit/types"
	"kontor/store"
)

// Proofs declare how the audit trail knows what this module keeps.
func Proofs() []records.Proof {
	payers := table.Proof()
	payers.Read = readPayer
	return []records.Proof{payers}
}

// storedPayer is what the database keeps of a payer and the API does not show.
type storedPayer struct {
	Version    int64  `json:"version"`
	CompanyKey string `json:"company_key"`
}

// audited is a payer as the audit trail knows it.
func audited(p Payer) store.Record {
	return store.Record{Answer: p, Stored: storedPayer{p.version, types.Fold(text(p.Company))}}
}

const selectCompanyKey = `SELECT company_key FROM payers WHERE id = $1`

// readPayer reads a payer with the derived column as it is stored.
func readPayer(ctx context.Context, q store.Querier, id string) (store.Record, error) {
	p, err := scanPayer(q.QueryRow(ctx, `SELECT `+columns+` FROM payers WHERE id = $1`, id))
	if err != nil {
		return store.Record{}, err
	}
	s := storedPayer{Version: p.version}
	err = q.QueryRow(ctx, selectCompanyKey, id).Scan(&s.CompanyKey)
	return store.Record{Answer: p, Stored: s}, err
}
