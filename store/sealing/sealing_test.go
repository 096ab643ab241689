package sealing_test

import (
	"bytes"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"kontor/store/sealing"
)

func newKeys(tb testing.TB, master []byte) *sealing.Keys {
	tb.Helper()
	keys, err := sealing.New(master)
	if err != nil {
		tb.Fatal(err)
	}
	return keys
}

// rotated returns keys after a rotation, with the wrapped keyring.
func rotated(tb testing.TB, before *sealing.Keys) (*sealing.Keys, string) {
	tb.Helper()
	after := newKeys(tb, sealing.NewMasterKey())
	if err := after.Use(before.Next(time.Unix(1, 0), "key", false)); err != nil {
		tb.Fatal(err)
	}
	wrapped, err := after.Wrap(*after.Keyring())
	if err != nil {
		tb.Fatal(err)
	}
	return after, wrapped
}

// Keys of databases without a keyring are derived as ever.
func TestKeys_GenerationZeroStaysTheSame(t *testing.T) {
	keys := newKeys(t, make([]byte, sealing.MasterKeyBytes))
	if got := keys.Keyed("api key", []byte("x")); !bytes.Equal(got, keys.Sign("api key", []byte("x"))) {
		t.Errorf("got %x", got)
	}
	sealed := keys.Seal("t", "c", "r", []byte("text"))
	if sealed[:2] != "1." || !keys.IsNewest(sealed) {
		t.Errorf("got %s", sealed)
	}
}

func TestKeys_ValuesOfEachGeneration(t *testing.T) {
	before := newKeys(t, sealing.NewMasterKey())
	old := before.Seal("t", "c", "r", []byte("text"))
	oldWith, err := before.SealWith([]byte("customer"), "t", "c", "r", []byte("text"))
	if err != nil {
		t.Fatal(err)
	}
	after, _ := rotated(t, before)
	value := after.Seal("t", "c", "r", []byte("text"))
	if value[:4] != "2.1." || !after.IsNewest(value) || after.IsNewest(old) {
		t.Errorf("got %s", value)
	}
	if _, err := before.Unseal("t", "c", "r", value); err == nil {
		t.Error("the former key opens a new value")
	}
	for _, sealed := range []string{old, value} {
		if got, err := after.Unseal("t", "c", "r", sealed); err != nil || string(got) != "text" {
			t.Errorf("%s: %q, %v", sealed, got, err)
		}
		if _, err := after.UnsealWith([]byte("customer"), "t", "c", "r", sealed); err == nil {
			t.Error("opened with a secret that it was not sealed with")
		}
	}
	if got, err := after.UnsealWith([]byte("customer"), "t", "c", "r", oldWith); err != nil || string(got) != "text" {
		t.Errorf("got %q, %v", got, err)
	}
	for name, err := range map[string]error{
		"without the secret": second(after.Unseal("t", "c", "r", oldWith)),
		"another secret":     second(after.UnsealWith([]byte("other"), "t", "c", "r", oldWith)),
		"another place":      second(after.UnsealWith([]byte("customer"), "t", "c", "x", oldWith)),
		"another generation": second(after.Unseal("t", "c", "r", "2.1."+old[2:])),
	} {
		if err == nil {
			t.Errorf("%s: opened", name)
		}
	}
	if err := after.Use(after.Keyring().Retired()); err != nil {
		t.Fatal(err)
	}
	if _, err := after.Unseal("t", "c", "r", old); err == nil {
		t.Error("a value of a retired generation was opened")
	}
	if len(after.KeyedOlder("customer name", nil)) != 1 || len(after.KeyedOlder("idempotency body", nil)) != 0 {
		t.Error("the wrong hashes are kept")
	}
}

func second(_ []byte, err error) error { return err }

// The former master key counts only until it is replaced, and the keyring does not contain it.
func TestKeys_FormerMasterKey(t *testing.T) {
	master := sealing.NewMasterKey()
	before := newKeys(t, master)
	signature := before.Sign("mark", []byte("x"))
	after, wrapped := rotated(t, before)
	if !after.Verify("mark", []byte("x"), signature) || after.IsMaster(master) {
		t.Error("while it is being replaced, its signatures count")
	}
	if err := after.Use(after.Keyring().Replaced()); err != nil {
		t.Fatal(err)
	}
	if after.Verify("mark", []byte("x"), signature) || after.SignedBefore("mark", []byte("x")) != nil {
		t.Error("the former key still counts")
	}
	if err := before.Load(wrapped); err == nil {
		t.Error("the former key opens the keyring")
	}
	for _, g := range after.Keyring().Generations {
		if bytes.Equal(g.Root, master) || slices.ContainsFunc([][]byte{g.Root}, func(b []byte) bool { return bytes.Contains(b, master) }) {
			t.Error("the keyring contains the former master key")
		}
	}
	if !bytes.Equal(after.DeriveFirst("audit answer", 32), before.DeriveFirst("audit answer", 32)) {
		t.Error("the keys of digests changed")
	}
}

func FuzzUnseal(f *testing.F) {
	keys, _ := rotated(f, newKeys(f, make([]byte, sealing.MasterKeyBytes)))
	good := keys.Seal("t", "c", "r", []byte("text"))
	for _, seed := range []string{"", "1.", "2.", "2.1.", "2.-1.AAAA", "2.01." + good[4:], "2.99999999999999999999.A", "3.1.A", good, good + "=", good[:20]} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, sealed string) {
		plain, err := keys.Unseal("t", "c", "r", sealed)
		if err == nil && string(plain) != "text" {
			t.Errorf("%q was opened: %q", sealed, plain)
		}
		if _, err := keys.UnsealWith([]byte("k"), "t", "c", "r", sealed); err == nil {
			t.Errorf("%q was opened with a secret", sealed)
		}
	})
}

func FuzzLoad(f *testing.F) {
	keys, wrapped := rotated(f, newKeys(f, make([]byte, sealing.MasterKeyBytes)))
	for _, seed := range []string{"", "k1.", "1." + wrapped[3:], wrapped + "A", wrapped[:len(wrapped)-4], "k1.AAAA"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if err := keys.Load(text); err == nil && text != wrapped {
			t.Errorf("%q was opened", text)
		}
	})
}

func BenchmarkKeyed(b *testing.B) {
	keys := newKeys(b, make([]byte, sealing.MasterKeyBytes))
	data := []byte("kontor_0123456789abcdef")
	b.ReportAllocs()
	for b.Loop() {
		keys.Keyed("api key", data)
	}
}

// Callers on all goroutines get the same, whatever was computed before.
func TestKeyed_DependsOnItsArgumentsOnly(t *testing.T) {
	keys := newKeys(t, make([]byte, sealing.MasterKeyBytes))
	want := map[string][]byte{}
	for _, data := range []string{"", "a", "b", strings.Repeat("c", 200)} {
		want[data] = newKeys(t, make([]byte, sealing.MasterKeyBytes)).Keyed("api key", []byte(data))
	}
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for range 100 {
				for data, sum := range want {
					if got := keys.Keyed("api key", []byte(data)); !bytes.Equal(got, sum) {
						t.Errorf("%q: got %x, want %x", data, got, sum)
					}
					if bytes.Equal(keys.Keyed("recovery code", []byte(data)), sum) {
						t.Errorf("%q: two purposes have one key", data)
					}
				}
			}
		})
	}
	all.Wait()
}
