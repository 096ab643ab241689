package app_test

import (
	"context"
	"log/slog"
	"testing"

	"kontor/modules/app"
	"kontor/server/servertest"
	"kontor/store"
	"kontor/store/storetest"
)

// Each start is cut off after one batch. The next one continues, so that the starts end, and each record is digested once.
func TestStart_ContinuesAnUpgradeOfDigests(t *testing.T) {
	const users, batch = 900, 200
	o := storetest.Options(t)
	db := storetest.OpenAgain(t, o)
	err := db.InTx(t.Context(), func(tx *store.Tx) error {
		for range users {
			if _, err := tx.Exec(t.Context(), `INSERT INTO users (id, status, language, created_at, created_by, modified_at, modified_by)
				VALUES ($1, 'active', 'en', 0, '', 0, '')`, store.NewID()); err != nil {
				return err
			}
		}
		tx.Audit(store.AuditEntry{Actor: store.NilID, Action: "audit.form", RecType: "audit", RecID: "record-form-1"})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	start := func() (err error) {
		before := 0
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		first := -1
		m, err := app.New(db, app.Options{Log: slog.New(slog.DiscardHandler), Progress: func(done, total int) {
			if done < before || done > total || total < users {
				t.Errorf("%d of %d records after %d", done, total, before)
			}
			if before = done; first < 0 {
				first = done
			}
			if done > first && done < total {
				cancel() // as a kill between two transactions
			}
		}})
		if err != nil {
			t.Fatal(err)
		}
		defer m.Close(t.Context())
		return m.Start(ctx)
	}
	cut := 0
	for ; start() != nil; cut++ {
		if cut == 1 { // another version serves meanwhile, and changes a record that was digested
			err := db.InTx(t.Context(), func(tx *store.Tx) error {
				var id string
				if err := tx.QueryRow(t.Context(), `SELECT MIN(id) FROM users`).Scan(&id); err != nil {
					return err
				}
				_, err := tx.Exec(t.Context(), `UPDATE users SET status = 'disabled' WHERE id = $1`, id)
				tx.Audit(store.AuditEntry{Actor: store.NilID, Action: "users.update", RecType: "users", RecID: id, After: "another form"})
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		if cut > 2*users/batch {
			t.Fatal("the upgrade does not end")
		}
	}
	if cut < users/batch {
		t.Errorf("the upgrade was cut off %d times only", cut)
	}
	for query, want := range map[string]int{
		`SELECT COUNT(*) FROM audit_entries WHERE action = 'audit.digest' AND rec_type = 'users'`:  users + 1,
		`SELECT COUNT(*) FROM audit_entries WHERE action = 'audit.form' AND rec_id LIKE '%/begun'`: 1,
	} {
		var n int
		if err := db.QueryRow(t.Context(), query).Scan(&n); err != nil || n != want {
			t.Errorf("%s: %d, want %d, %v", query, n, want, err)
		}
	}
	if n, err := checkRecords(t, o); err != nil || n < users {
		t.Errorf("%d records, %v", n, err)
	}
}

// A new form of one record type digests its records, once, and no other ones.
func TestStart_DigestsTheRecordsOfATypeWithANewForm(t *testing.T) {
	s := servertest.Start(t)
	customer := customerOf(t, s)
	for range 3 {
		s.Admin().Create("/v1/payers", map[string]any{"customer_id": customer, "name": "Anna"})
	}
	proofs := app.Proofs()
	for i := range proofs {
		if proofs[i].Type == "payers" {
			proofs[i].Form = 2
		}
	}
	const digested = `SELECT COUNT(*) FROM audit_entries WHERE action = 'audit.digest' AND rec_type `
	for range 2 {
		if err := app.UpgradeDigests(t.Context(), s.Modules, proofs); err != nil {
			t.Fatal(err)
		}
		for query, want := range map[string]int{
			digested + `= 'payers'`: 3, digested + `<> 'payers'`: 0,
			`SELECT COUNT(*) FROM audit_entries WHERE action = 'audit.form' AND rec_id LIKE 'record-form/payers/2%'`: 2,
		} {
			var n int
			if err := s.DB.QueryRow(t.Context(), query).Scan(&n); err != nil || n != want {
				t.Errorf("%s: %d, want %d, %v", query, n, want, err)
			}
		}
	}
}

// The upgrade continues after the last record of a type, so that each type needs one proof.
func TestProofs_HaveOneForEachType(t *testing.T) {
	types := map[string]bool{}
	for _, p := range app.Proofs() {
		if types[p.Type] {
			t.Errorf("%s has two proofs", p.Type)
		}
		types[p.Type] = true
	}
}
