package qrbill

import (
	"bytes"
	"testing"
	"time"
)

// tiny is a module with the import that yields, one global, and one function
// with a local variable.
var tiny = []byte{0, 'a', 's', 'm', 1, 0, 0, 0,
	1, 8, 2, 0x60, 1, 0x7f, 0, 0x60, 0, 0,
	2, 38, 1, 3, 'e', 'n', 'v', 31,
	'e', 'm', 's', 'c', 'r', 'i', 'p', 't', 'e', 'n', '_', 'n', 'o', 't', 'i', 'f', 'y', '_', 'm', 'e', 'm', 'o', 'r', 'y', '_', 'g', 'r', 'o', 'w', 't', 'h', 0, 0,
	3, 2, 1, 1,
	6, 6, 1, 0x7f, 1, 0x41, 0, 0x0b,
	10, 6, 1, 4, 1, 1, 0x7f, 0x0b,
}

func TestWithYields_CountsInEveryFunction(t *testing.T) {
	tiny := append([]byte(nil), tiny...)
	tiny[19] = byte(1 + 1 + 3 + 1 + len(yieldName) + 2) // size of the import section
	tiny[25] = byte(len(yieldName))
	out, err := withYields(tiny)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Contains(out, append([]byte{1, 1, typeI32}, prologue(1, 0)...)) {
		t.Errorf("the prologue does not stand behind the local variables: % x", out)
	}
}

func TestWithYields_RefusesOtherModules(t *testing.T) {
	for name, module := range map[string][]byte{
		"nothing":       {0, 'a', 's', 'm', 1, 0, 0, 0},
		"cut":           tiny[:30],
		"shorter still": tiny[:3],
	} {
		if _, err := withYields(module); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func TestGuestMemory_GrowsToItsLimit(t *testing.T) {
	memory := &guestMemory{regions: &regions{}}
	first := memory.Reallocate(10)
	first[9] = 7
	if grown := memory.Reallocate(engineMemory); len(grown) != engineMemory || grown[9] != 7 {
		t.Errorf("grew to %d", len(grown))
	}
	if memory.exhausted() {
		t.Error("exhausted before the limit")
	}
	if memory.Reallocate(engineMemory+1) != nil || !memory.exhausted() {
		t.Error("grew beyond the limit")
	}
}

func TestGuestMemory_PoisonsOnlyWhenTimeIsUp(t *testing.T) {
	memory := &guestMemory{regions: &regions{}}
	memory.Reallocate(8)
	if memory.poisonAfter(t.Context(), time.Hour)() {
		t.Error("poisoned before the time")
	}
	stop := memory.poisonAfter(t.Context(), 0)
	for poisoned := false; !poisoned; {
		memory.mutex.Lock()
		poisoned = memory.bytes[7] == poison
		memory.mutex.Unlock()
	}
	if !stop() {
		t.Error("not told that it came to that")
	}
}

func TestGuestMemory_IsEmptyForTheNextGuest(t *testing.T) {
	shared := &regions{}
	first := &guestMemory{regions: shared}
	first.Reallocate(100)[99] = 7
	first.Free()
	first.Free() // a second time does nothing
	second := &guestMemory{regions: shared}
	if got := second.Reallocate(100)[99]; got != 0 {
		t.Errorf("found %d", got)
	}
	if len(shared.free) != 0 {
		t.Error("the region was not used again")
	}
}
