package audittrail_test

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"testing"

	"kontor/store"
	"kontor/store/audittrail"
	"kontor/store/engine"
	"kontor/store/inspect"
	"kontor/store/storetest"
)

// measured appends texts as the hash of an entry covers them.
func measured(b []byte, texts ...string) []byte {
	for _, s := range texts {
		b = append(binary.BigEndian.AppendUint32(b, uint32(len(s))), s...)
	}
	return b
}

// begin returns the bytes that the hashes of both forms begin with.
func begin(tag string, prev [32]byte, seq, at int64) []byte {
	b := append([]byte(tag), prev[:]...)
	return binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(b, uint64(seq)), uint64(at))
}

// Entries from before migration 21 are valid, and so are those after them. The test writes the bytes of both forms as they
// are documented.
// insertForm1 begins the trail of a new database with three entries of form 1.
func insertForm1(t *testing.T, o store.Options, db *store.DB) {
	t.Helper()
	ctx := t.Context()
	var head [32]byte
	err := db.InTx(ctx, func(tx *store.Tx) error {
		for seq := int64(1); seq <= 3; seq++ {
			prev := head
			head = sha256.Sum256(measured(begin("", prev, seq, 1000*seq), "anna", "roles.create", "roles", "r1", "", "d"))
			if _, err := tx.Exec(ctx, `
				INSERT INTO audit_entries (seq, at, actor, action, rec_type, rec_id, before_hash, after_hash, prev_hash, hash)
				VALUES ($1, $2, 'anna', 'roles.create', 'roles', 'r1', '', 'd', $3, $4)`,
				seq, 1000*seq, hex.EncodeToString(prev[:]), hex.EncodeToString(head[:])); err != nil {
				return err
			}
		}
		_, err := tx.Exec(ctx, engine.UpsertMeta, audittrail.MetaHead, audittrail.SignedHead(storetest.MasterKey(t, o), 3, head))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestVerify_AcceptsBothForms(t *testing.T) {
	ctx := t.Context()
	o := storetest.Options(t)
	db := storetest.OpenAgain(t, o)
	type origin struct{}
	db.SetOrigin(func(ctx context.Context) store.Origin {
		o, _ := ctx.Value(origin{}).(store.Origin)
		return o
	})
	insertForm1(t, o, db)
	if n, err := db.VerifyAudit(ctx); n != 3 || err != nil {
		t.Fatalf("form 1: %d entries, %v", n, err)
	}
	from := store.Origin{Session: "s1", Network: "192.0.2.0/24", RequestID: "q1"}
	err := db.InTx(context.WithValue(ctx, origin{}, from), func(tx *store.Tx) error {
		tx.Audit(store.AuditEntry{Actor: "anna", Action: "roles.update", RecType: "roles", RecID: "r1"})
		tx.Audit(store.AuditEntry{Actor: "beat", Action: "access.denied", RecType: "roles", RecID: "r1", Kind: "denial",
			Detail: `{"count":2}`, Origin: &store.Origin{Network: "2001:db8::/48"}})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if n, err := db.VerifyAudit(ctx); n != 5 || err != nil {
		t.Fatalf("form 2 behind form 1: %d entries, %v", n, err)
	}
	at := int64(db.Now())
	for seq, texts := range map[int64][]string{
		4: {"anna", "roles.update", "roles", "r1", "", "", "", "s1", "192.0.2.0/24", "q1", ""},
		5: {"beat", "access.denied", "roles", "r1", "", "", "denial", "", "2001:db8::/48", "", `{"count":2}`},
	} {
		var prev, hash string
		if err := db.QueryRow(ctx, `SELECT prev_hash, hash, at FROM audit_entries WHERE seq = $1`, seq).Scan(&prev, &hash, &at); err != nil {
			t.Fatal(err)
		}
		before, err := hex.DecodeString(prev)
		if err != nil {
			t.Fatal(err)
		}
		want := sha256.Sum256(measured(begin("kontor audit entry 2\n", [32]byte(before), seq, at), texts...))
		if hash != hex.EncodeToString(want[:]) {
			t.Errorf("entry %d: the hash is not made as it is documented", seq)
		}
	}
}

// No column of an entry can be changed unnoticed, also not by turning an entry into one of form 1, which covers less.
func TestVerify_CoversEachColumn(t *testing.T) {
	for _, change := range []string{
		"form = 1", "form = 3", "kind = 'denial'", "kind = ''", "session_id = 's2'", "network = '203.0.113.0/24'", "request_id = 'x'", `detail = '{}'`,
		"actor = 'x'", "action = 'x'", "rec_type = 'x'", "rec_id = 'x'", "before_hash = 'x'", "after_hash = 'x'", "at = at + 1",
	} {
		o := storetest.Options(t)
		db := storetest.OpenAgain(t, o)
		storetest.Audit(t, db, 3)
		db.Close()
		run(t, o, `DROP TRIGGER audit_entries_no_update`, `UPDATE audit_entries SET `+change+` WHERE seq = 2`)
		_, err := inspect.Check(t.Context(), storetest.Source(o), nil)
		if bad, ok := errors.AsType[*audittrail.Break](err); !ok || bad.Seq != 2 {
			t.Errorf("%s: got %v", change, err)
		}
	}
}
