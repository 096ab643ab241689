package store_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"

	"kontor/store"
	"kontor/store/audittrail"
	"kontor/store/inspect"
	"kontor/store/sealing"
	"kontor/store/storetest"
)

// newKey is a master key to rotate to.
var newKey = strings.Repeat("c0de", 16)

// withBothKeys opens the database of db as nodes that were started with the new and the present key.
func withBothKeys(t *testing.T, db *store.DB, n int) (nodes []*store.DB, r store.Rotation) {
	t.Helper()
	o := storetest.OptionsOf(t, db)
	r = store.Rotation{SecretKey: newKey, PreviousKey: o.SecretKey}
	o.SecretKey, o.PreviousKey = newKey, o.SecretKey
	for range n {
		node := storetest.OpenAgain(t, o)
		notes(node)
		nodes = append(nodes, node)
	}
	return nodes, r
}

// twoNodes opens a database with 20 values as two nodes that were started with both keys.
func twoNodes(t *testing.T) ([]*store.DB, store.Rotation) {
	t.Helper()
	first := storetest.OpenShared(t, nil)
	notes(first)
	writeNotes(t, first, 0, 20)
	nodes, rotation := withBothKeys(t, first, 2)
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	return nodes, rotation
}

// checkTrail verifies the audit trail of a database that has the new key.
func checkTrail(t *testing.T, db *store.DB) {
	t.Helper()
	o := storetest.OptionsOf(t, db)
	o.SecretKey, o.PreviousKey = newKey, ""
	_, err := inspect.Check(t.Context(), storetest.Source(o), func(context.Context, *audittrail.Evidence) error { return nil })
	if err != nil {
		t.Errorf("the trail: %v", err)
	}
}

// Nodes that were started with both keys follow a rotation on one of them at once: they open what it seals, and seal what it opens.
func TestNodes_FollowARotation(t *testing.T) {
	first := storetest.OpenShared(t, nil)
	notes(first)
	writeNotes(t, first, 0, 120)
	nodes, rotation := withBothKeys(t, first, 2)
	a, b := nodes[0], nodes[1]
	if a.KeyGeneration() != 0 || b.KeyGeneration() != 0 {
		t.Fatal("a node that was started beside others has replaced the key by itself")
	}
	writeNotes(t, b, 120, 125)
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := a.RotateMasterKey(t.Context(), rotation); err != nil {
		t.Fatal(err)
	}
	if a.KeyGeneration() != 1 || b.Remembers() && b.KeyGeneration() != 1 {
		t.Fatalf("generations %d and %d after a rotation", a.KeyGeneration(), b.KeyGeneration())
	}
	writeNotes(t, b, 125, 130)
	writeNotes(t, a, 130, 135)
	if readNotes(t, a) != 135 || readNotes(t, b) != 135 {
		t.Error("values are missing")
	}
	if string(a.Keyed("otp", []byte("1"))) != string(b.Keyed("otp", []byte("1"))) {
		t.Error("the nodes hash differently")
	}
	state, err := b.KeyState(t.Context())
	if err != nil || state.Resealing || len(state.Remaining) != 0 {
		t.Errorf("the other node reports %+v, %v", state, err)
	}
	checkTrail(t, a)
}

// The nodes write all the time while the key is replaced: no head of the trail is signed with a replaced key.
func TestNodes_RotationInAWriteLoad(t *testing.T) {
	first := storetest.OpenShared(t, nil)
	notes(first)
	nodes, rotation := withBothKeys(t, first, 3)
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	stop := make(chan struct{})
	var begun, writing sync.WaitGroup
	for i, node := range nodes {
		begun.Add(1)
		writing.Go(func() {
			first := sync.OnceFunc(begun.Done)
			defer first() // also when a write fails
			for n := 1_000_000 * i; ; n++ {
				select {
				case <-stop:
					return
				default:
					writeNotes(t, node, n, n+1)
					first()
				}
			}
		})
	}
	begun.Wait()
	_, err := nodes[0].RotateMasterKey(t.Context(), rotation)
	close(stop)
	writing.Wait()
	if err != nil {
		t.Fatal(err)
	}
	counted := readNotes(t, nodes[1])
	if counted == 0 || readNotes(t, nodes[2]) != counted {
		t.Error("a node cannot open all values")
	}
	checkTrail(t, nodes[0])
}

// A node that was started with the former key alone must not write with it. It says why, and is not ready.
func TestNodes_WithoutTheNewKey(t *testing.T) {
	former := storetest.OpenShared(t, nil)
	notes(former)
	nodes, rotation := withBothKeys(t, former, 1)
	if _, err := nodes[0].RotateMasterKey(t.Context(), rotation); err != nil {
		t.Fatal(err)
	}
	audited := func(tx *store.Tx) error {
		tx.Audit(store.AuditEntry{Actor: store.NilID, Action: "note", RecType: "notes", RecID: "1"})
		return nil
	}
	if err := former.InTx(t.Context(), audited); !errors.Is(err, store.ErrWrongKey) || !strings.Contains(err.Error(), "was replaced at") {
		t.Errorf("a write: %v", err)
	}
	if err := former.Ready(t.Context()); !errors.Is(err, store.ErrWrongKey) {
		t.Errorf("ready: %v", err)
	}
	if former.KeysCurrent() {
		t.Error("the node believes that its keys are the present ones")
	}
	if err := former.RenewKeys(t.Context()); !errors.Is(err, store.ErrWrongKey) {
		t.Errorf("renew: %v", err)
	}
	checkTrail(t, nodes[0])
}

// A node that was not informed of the rotation finds out by itself, at the latest when it writes.
func TestNodes_RotationWithoutAnnouncement(t *testing.T) {
	first := storetest.OpenShared(t, nil)
	notes(first)
	nodes, rotation := withBothKeys(t, first, 1)
	isolatedFormer, isolated := storetest.Isolated(t, first, true), storetest.Isolated(t, nodes[0], true)
	notes(isolatedFormer)
	notes(isolated)
	if _, err := nodes[0].RotateMasterKey(t.Context(), rotation); err != nil {
		t.Fatal(err)
	}
	writeNotes(t, nodes[0], 0, 5)
	if n := readNotes(t, isolated); n != 5 {
		t.Errorf("%d values", n)
	}
	writeNotes(t, isolated, 5, 10)
	if n := readNotes(t, nodes[0]); n != 10 {
		t.Errorf("%d values", n)
	}
	err := isolatedFormer.InTx(t.Context(), func(tx *store.Tx) error {
		tx.Audit(store.AuditEntry{Actor: store.NilID, Action: "note", RecType: "notes", RecID: "1"})
		return nil
	})
	if !errors.Is(err, store.ErrWrongKey) || isolatedFormer.KeysCurrent() {
		t.Errorf("a write with the former key: %v", err)
	}
	checkTrail(t, nodes[0])
}

// Of two rotations at the same time one is made.
func TestNodes_RotateAtTheSameTime(t *testing.T) {
	nodes, rotation := twoNodes(t)
	var rotating sync.WaitGroup
	for _, node := range nodes {
		rotating.Go(func() { _, _ = node.RotateMasterKey(t.Context(), rotation) })
	}
	rotating.Wait()
	if nodes[0].KeyGeneration() != 1 || nodes[1].KeyGeneration() != 1 {
		t.Errorf("generations %d and %d", nodes[0].KeyGeneration(), nodes[1].KeyGeneration())
	}
	if readNotes(t, nodes[0]) != 20 || readNotes(t, nodes[1]) != 20 {
		t.Error("values are missing")
	}
	checkTrail(t, nodes[0])
}

// A rotation that another node overtakes, which this one already follows, must not store a further keyring: values that are sealed with
// the first one could not be opened any more.
func TestNodes_ARotationThatAnotherOvertakes(t *testing.T) {
	nodes, rotation := twoNodes(t)
	begun := nodes[1].KeysAsNow()
	if _, err := nodes[0].RotateMasterKey(t.Context(), rotation); err != nil {
		t.Fatal(err)
	}
	master, err := sealing.ParseMasterKey(newKey)
	if err != nil {
		t.Fatal(err)
	}
	if err := nodes[1].ReplaceMasterKey(t.Context(), begun, master); err == nil || !strings.Contains(err.Error(), "in the meantime") {
		t.Errorf("got %v", err)
	}
	for i, node := range nodes {
		if node.KeyGeneration() != 1 || readNotes(t, node) != 20 {
			t.Errorf("node %d: generation %d", i, node.KeyGeneration())
		}
	}
	checkTrail(t, nodes[1])
}

// Functions of Exclusively do not overlap, also after a node that was killed in one.
func TestNodes_Exclusively(t *testing.T) {
	a := storetest.OpenShared(t, nil)
	nodes := []*store.DB{a, storetest.Second(t, a), storetest.Second(t, a)}
	if err := a.InTx(t.Context(), func(tx *store.Tx) error {
		_, err := tx.Exec(t.Context(), `INSERT INTO meta (name, value) VALUES ('exclusive', 'a node that was killed')`)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	var running, runs int
	var mu sync.Mutex
	var wait sync.WaitGroup
	for _, node := range nodes {
		for range 3 {
			wait.Go(func() {
				err := node.Exclusively(t.Context(), func(ctx context.Context) error {
					mu.Lock()
					running++
					runs++
					if running > 1 {
						t.Error("two functions at a time")
					}
					mu.Unlock()
					err := node.InTx(ctx, func(*store.Tx) error { return nil })
					mu.Lock()
					defer mu.Unlock()
					running--
					return err
				})
				if err != nil {
					t.Error(err)
				}
			})
		}
	}
	wait.Wait()
	if runs != 9 {
		t.Errorf("%d runs", runs)
	}
}
