package invoices

import (
	"kontor/modules/kit/list"
	"kontor/store"
)

const (
	billsTable    = "bills"
	contentColumn = "content_sealed"
	billColumns   = "id, read_at, content_sealed"
)

const (
	insertBill = `INSERT INTO bills (id, user_id, content_sealed, read_at) VALUES ($1, $2, $3, $4)`
	touchBill  = `UPDATE bills SET read_at = $3 WHERE id = $1 AND user_id = $2`
	deleteBill = `DELETE FROM bills WHERE id = $1 AND user_id = $2`

	selectBillsOf = `SELECT ` + billColumns + ` FROM bills WHERE user_id = $1`

	deleteSurplusBills = `
		DELETE FROM bills WHERE id IN (
			SELECT id FROM bills WHERE user_id = $1 ORDER BY read_at DESC, id DESC LIMIT 1000 OFFSET $2)`

	purgeBills = `DELETE FROM bills WHERE id IN (SELECT id FROM bills WHERE read_at < $1 ORDER BY read_at LIMIT $2)`
)

// sealedBills says how bills are sealed again after a rotation of the master key.
var sealedBills = store.SealedColumn{
	Table: billsTable, Column: contentColumn,
	Select: `SELECT id, id, content_sealed FROM bills WHERE content_sealed NOT LIKE $1 AND id > $2 ORDER BY id LIMIT $3`,
	Update: `UPDATE bills SET content_sealed = $3 WHERE id = $1 AND content_sealed = $2`,
}

var billList = list.New(list.Source[Bill]{
	From: billsTable, Columns: billColumns, ID: "id", Created: "read_at", Tables: []string{billsTable}, Scan: scanBill,
	Fields: list.Fields{
		{Name: "id", Type: list.UUID, Column: "id"},
		{Name: "read_at", Type: list.Time, Column: "read_at"},
	},
})

func scanBill(row list.Row) (Bill, error) {
	var b Bill
	err := row.Scan(&b.ID, &b.ReadAt, &b.sealed)
	return b, err
}
