package payers

import (
	"context"
	"strings"

	"kontor/modules/kit/list"
	"kontor/modules/kit/records"
	"kontor/modules/kit/types"
	"kontor/server/access"
	"kontor/server/apierr"
	"kontor/store"
)

const columns = `
	id, customer_id, email, name, company, country, active, metadata,
	created_at, created_by, modified_at, modified_by, version, erased_at`

const insertStatement = `
	INSERT INTO payers (
		id, customer_id, email, name, company, company_key, country, active, metadata,
		created_at, created_by, modified_at, modified_by, version)
	VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $10, $11, 1)`

const updateStatement = `
	UPDATE payers SET
		email = $2, name = $3, company = $4, company_key = $5, country = $6, active = $7, metadata = $8,
		modified_at = $9, modified_by = $10, version = $11
	WHERE id = $1`

var table = &records.Table[Payer]{
	Type: access.Payers, From: "payers", Columns: columns, Scan: scanPayer,
	Relations: []records.Relation{records.Created}, Missing: apierr.PayerNotFound, Record: audited,
}

var payerList = list.New(list.Source[Payer]{
	From: "payers", Columns: columns, ID: "id", Created: "created_at", Tables: []string{"payers"}, Scan: scanPayer,
	Fields: list.Fields{
		{Name: "customer_id", Type: list.UUID, Column: "customer_id"},
		{Name: "country", Type: list.Text, Column: "country", Key: "country", Fold: strings.ToUpper, Null: true, Index: list.ThenCreated},
		{Name: "active", Type: list.Bool, Column: "active", Index: list.ThenCreated},
	},
})

func scanPayer(row records.Row) (Payer, error) {
	var p Payer
	err := row.Scan(&p.ID, &p.CustomerID, &p.Email, &p.Name, &p.Company, &p.Country, &p.Active, (*[]byte)(&p.Metadata),
		&p.CreatedAt, &p.CreatedBy, &p.ModifiedAt, &p.ModifiedBy, &p.version, &p.ErasedAt)
	return p, err
}

func insertPayer(ctx context.Context, tx *store.Tx, p Payer) error {
	_, err := tx.Exec(ctx, insertStatement, p.ID, p.CustomerID, p.Email, p.Name, p.Company, types.Fold(types.EmptyIfNil(p.Company)), p.Country,
		p.Active, string(p.Metadata), p.CreatedAt, p.CreatedBy)
	return err
}

func updatePayer(ctx context.Context, tx *store.Tx, _, p Payer) error {
	_, err := tx.Exec(ctx, updateStatement, p.ID, p.Email, p.Name, p.Company, types.Fold(types.EmptyIfNil(p.Company)), p.Country,
		p.Active, string(p.Metadata), p.ModifiedAt, p.ModifiedBy, p.version)
	return err
}
