package qrbill

// linearMemory is the memory of a WebAssembly instance. It is outside the Go heap: it does not move when it grows, it does
// not delay the garbage collector, and it is released to the system at once.
type linearMemory struct {
	region []byte // the maximum size
	denied bool   // the instance requested more
}

func newLinearMemory() *linearMemory { return &linearMemory{region: reserve(engineMemory)} }

// Reallocate resizes the memory. It returns nil beyond the maximum.
func (g *linearMemory) Reallocate(size uint64) []byte {
	if size > uint64(len(g.region)) {
		g.denied = true
		return nil
	}
	return g.region[:size]
}

// Free releases the memory.
func (g *linearMemory) Free() {
	release(g.region)
	g.region = nil
}
