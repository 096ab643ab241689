package qrbill

// guestMemory is the memory that a WebAssembly instance computes in. It is outside the Go heap: it neither moves while
// it grows nor makes the garbage collector wait for as much garbage again, and it returns to the system at once.
type guestMemory struct {
	region []byte // all that may be used
	denied bool   // more was asked for
}

func newGuestMemory() *guestMemory { return &guestMemory{region: reserve(engineMemory)} }

// Reallocate resizes the memory; nil refuses.
func (g *guestMemory) Reallocate(size uint64) []byte {
	if size > uint64(len(g.region)) {
		g.denied = true
		return nil
	}
	return g.region[:size]
}

// Free gives the memory back.
func (g *guestMemory) Free() {
	release(g.region)
	g.region = nil
}
