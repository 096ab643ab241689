package payers

import (
	"context"

	"kontor/modules/kit/records"
	"kontor/modules/kit/types"
	"kontor/store"
)

// Proofs declares how the audit trail reads the records of this module.
func Proofs() []records.Proof {
	payers := table.Proof()
	payers.Read = readPayer
	return []records.Proof{payers}
}

// storedPayer holds the columns of a payer that the API does not show.
type storedPayer struct {
	Version    int64  `json:"version"`
	CompanyKey string `json:"company_key"`
}

// audited returns the record that audit entries of a payer digest.
func audited(p Payer) store.Record {
	return store.Record{Answer: p, Stored: storedPayer{p.version, types.Fold(types.EmptyIfNil(p.Company))}}
}

const selectCompanyKey = `SELECT company_key FROM payers WHERE id = $1`

// readPayer reads a payer with its search key as it is stored. It does not compute the key, so that a check finds a wrong one.
func readPayer(ctx context.Context, q store.Querier, id string) (store.Record, error) {
	p, err := scanPayer(q.QueryRow(ctx, `SELECT `+columns+` FROM payers WHERE id = $1`, id))
	if err != nil {
		return store.Record{}, err
	}
	s := storedPayer{Version: p.version}
	err = q.QueryRow(ctx, selectCompanyKey, id).Scan(&s.CompanyKey)
	return store.Record{Answer: p, Stored: s}, err
}
