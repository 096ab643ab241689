package records_test

import (
	"context"
	"errors"
	"testing"

	"kontor/modules/kit/records"
	"kontor/store"
	"kontor/store/audittrail"
	"kontor/store/inspect"
	"kontor/store/storetest"
)

func TestProve_LeavesOutThePeopleOfAnAnswer(t *testing.T) {
	options := storetest.Options(t)
	db := storetest.OpenAgain(t, options)
	proof := records.Proof{Type: "notes", Outside: map[string]string{"read": "false"}}
	err := db.InTx(t.Context(), func(tx *store.Tx) error {
		tx.Audit(store.AuditEntry{Actor: "anna", Action: "notes.create", RecType: "notes", RecID: "n1",
			After: map[string]any{"id": "n1", "read": false}})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	db.Close()
	for answer, want := range map[string]error{
		`{"id":"n1","read":true,"people":{"u1":{"display_name":"Anna","staff":false}}}`: nil,
		`{"id":"n1","read":true}`:                nil,
		`{"id":"n2","read":true,"people":{}}`:    records.ErrUnproven,
		`{"id":"n1","read":true,"friends":null}`: records.ErrUnproven,
	} {
		_, err := inspect.Check(t.Context(), storetest.Source(options), func(ctx context.Context, e *audittrail.Evidence) error {
			_, _, err := proof.Prove(ctx, e, "n1", []byte(answer))
			return err
		})
		if !errors.Is(err, want) {
			t.Errorf("%s: got %v, want %v", answer, err, want)
		}
	}
}
