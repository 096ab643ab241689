package invoices

import (
	"bytes"
	"context"
	"fmt"
	"time"

	"github.com/go-json-experiment/json"

	"kontor/modules/bank/invoices/qrbill"
	"kontor/modules/kit/list"
	"kontor/modules/kit/personal"
	"kontor/server/access"
	"kontor/server/apierr"
	"kontor/server/endpoint"
	"kontor/store"
)

// Bill is a bill that a user has kept.
type Bill struct {
	ID     string     `json:"id"`
	ReadAt store.Time `json:"read_at" doc:"When it was read last."`
	QRInfo QRInfo     `json:"qr_info"`

	sealed string
}

// maxBills is the number of bills that a user may keep. A further one replaces the oldest.
const maxBills = 200

// BillsInput holds the parameters of the list.
type BillsInput struct {
	Query list.Params `query:"*"`
}

// BillInput names a kept bill.
type BillInput struct {
	ID string `path:"id"`
}

// keep stores a bill for the caller and returns its id. A bill that they have kept already only gets the new time.
func (s *Service) keep(ctx context.Context, info QRInfo) (string, error) {
	for i := range info.Warnings {
		info.Warnings[i].Message = "" // in the language of this request; Bills renders it again
	}
	content, err := encodeBill(info)
	if err != nil {
		return "", err
	}
	userID := access.From(ctx).UserID
	id, err := s.sameBill(ctx, userID, content)
	if err != nil {
		return "", err
	}
	known := id != ""
	if !known {
		id = store.NewID()
	}
	sealed, err := s.db.Seal(billsTable, contentColumn, id, content)
	if err != nil {
		return "", err
	}
	return id, s.db.InTx(ctx, func(tx *store.Tx) error {
		if known {
			if changed, err := tx.Exec(ctx, touchBill, id, userID, tx.Now()); err != nil || changed > 0 {
				return err
			}
		}
		if _, err := tx.Exec(ctx, insertBill, id, userID, sealed, tx.Now()); err != nil {
			return fmt.Errorf("keep a bill: %w", err)
		}
		if _, err := tx.Exec(ctx, deleteSurplusBills, userID, maxBills); err != nil {
			return fmt.Errorf("delete the oldest bills: %w", err)
		}
		tx.Audit(store.AuditEntry{Actor: userID, Action: "invoices.keep", RecType: access.Invoices.Name, RecID: id})
		return nil
	})
}

// sameBill returns the id of the caller's bill with the same content, or an empty text.
func (s *Service) sameBill(ctx context.Context, userID string, content []byte) (string, error) {
	bills, err := store.All(ctx, s.db, scanBill, selectBillsOf, userID)
	if err != nil {
		return "", fmt.Errorf("read the kept bills: %w", err)
	}
	for _, b := range bills {
		plain, err := s.db.Unseal(billsTable, contentColumn, b.ID, b.sealed)
		if err != nil {
			return "", err
		}
		if bytes.Equal(plain, content) {
			return b.ID, nil
		}
		if info, err := decodeBill(plain); err == nil { // of an earlier version
			if again, err := encodeBill(info); err == nil && bytes.Equal(again, content) {
				return b.ID, nil
			}
		}
	}
	return "", nil
}

// Bills returns a page of the bills that the caller has kept.
func (s *Service) Bills(ctx context.Context, in BillsInput) (list.Page[Bill], error) {
	page, err := billList.Page(ctx, s.db, in.Query, list.Where{SQL: "user_id = $1", Args: []any{access.From(ctx).UserID}})
	for i := range page.Data.Rows {
		if err == nil {
			err = s.open(endpoint.Language(ctx), &page.Data.Rows[i])
		}
	}
	return page, err
}

// open reads the content of a bill, with its warnings in a language.
func (s *Service) open(lang string, b *Bill) error {
	plain, err := s.db.Unseal(billsTable, contentColumn, b.ID, b.sealed)
	if err != nil {
		return err
	}
	info, err := decodeBill(plain)
	if err != nil {
		return fmt.Errorf("decode the bill %s: %w", b.ID, err)
	}
	b.QRInfo = info
	for i, w := range b.QRInfo.Warnings {
		b.QRInfo.Warnings[i].Message = s.describe(lang, w)
	}
	return nil
}

func encodeBill(info QRInfo) ([]byte, error) {
	content, err := json.Marshal(info, json.Deterministic(true))
	if err != nil {
		return nil, fmt.Errorf("encode a bill: %w", err)
	}
	return content, nil
}

// decodeBill decodes a stored bill. Those of earlier versions have the lines of the creditor's address in the creditor.
func decodeBill(plain []byte) (info QRInfo, err error) {
	if err := json.Unmarshal(plain, &info); err != nil || info.AddressLines != nil {
		return info, err
	}
	var earlier struct {
		Creditor qrbill.Party `json:"creditor"`
	}
	err = json.Unmarshal(plain, &earlier)
	info.AddressLines = earlier.Creditor.AddressLines
	return info, err
}

// Forget deletes a bill of the caller. It returns apierr.BillNotFound, also for a bill of another user.
func (s *Service) Forget(ctx context.Context, in BillInput) (endpoint.Message, error) {
	userID := access.From(ctx).UserID
	err := s.db.InTx(ctx, func(tx *store.Tx) error {
		deleted, err := tx.Exec(ctx, deleteBill, in.ID, userID)
		if err != nil {
			return err
		}
		if deleted == 0 {
			return apierr.BillNotFound
		}
		tx.Audit(store.AuditEntry{Actor: userID, Action: "invoices.forget", RecType: access.Invoices.Name, RecID: in.ID})
		return nil
	})
	return endpoint.Confirm(ctx, s.texts, "invoices.forgotten"), err
}

// purgeBatch is the number of bills that one transaction deletes.
const purgeBatch = 500

// Purge deletes the bills that were read last more than the given number of days ago.
func (s *Service) Purge(ctx context.Context) error {
	before := s.db.Now().Add(-time.Duration(s.keepDays) * 24 * time.Hour)
	err := s.db.InBatches(ctx, purgeBatch, func(tx *store.Tx) (int64, error) { return tx.Exec(ctx, purgeBills, before, purgeBatch) })
	if err != nil {
		return fmt.Errorf("delete old bills: %w", err)
	}
	return nil
}

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

// PersonalData lists the tables of the module.
func (s *Service) PersonalData() []personal.Table {
	return []personal.Table{{Name: billsTable, Holds: "QR-bills that a user has kept: creditors, debtors, amounts and references, sealed", Sections: []string{"bills"}}}
}

const (
	selectBillsAfter = `
		SELECT ` + billColumns + ` FROM bills
		WHERE user_id = $1 AND id > $2 ORDER BY id LIMIT $3`

	selectBillIDs = `SELECT id FROM bills WHERE user_id = $1 AND id > $2 ORDER BY id LIMIT $3`

	eraseBill = `DELETE FROM bills WHERE id = $1`
)

// PersonalSections declares the bills that a user has kept.
func (s *Service) PersonalSections() []personal.Section {
	return []personal.Section{
		personal.Own(personal.About{Name: "bills", Kind: personal.User, Endpoint: "GET /v1/invoices/bills"},
			personal.Rows(selectBillsAfter, scanBill, func(b Bill) string { return b.ID }),
			func(ctx context.Context, _ store.Querier, b Bill) (any, error) {
				err := s.open(endpoint.Language(ctx), &b)
				return b, err
			}),
	}
}

// ErasePerson deletes the bills that a user has kept.
func (s *Service) ErasePerson(ctx context.Context, tx *store.Tx, subject personal.Subject, cursor string) (string, error) {
	if subject.Kind != personal.User {
		return "", nil
	}
	return personal.Run(ctx, tx, cursor, personal.Delete(selectBillIDs, eraseBill, subject.ID))
}
