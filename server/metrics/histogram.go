package metrics

import (
	"math"
	"sort"
	"sync/atomic"
)

// Histogram counts observations by their size. Its methods may be called by several goroutines at once.
type Histogram struct {
	bounds []float64       // the upper bounds, in order
	counts []atomic.Uint64 // one more than bounds: those above all of them
	sum    atomic.Uint64   // the bits of the sum
}

// NewHistogram returns an empty histogram with the upper bounds of its buckets, in order.
func NewHistogram(bounds []float64) *Histogram {
	return &Histogram{bounds: bounds, counts: make([]atomic.Uint64, len(bounds)+1)}
}

// Observe counts a value.
func (h *Histogram) Observe(value float64) {
	h.counts[sort.SearchFloat64s(h.bounds, value)].Add(1)
	for {
		old := h.sum.Load()
		if h.sum.CompareAndSwap(old, math.Float64bits(math.Float64frombits(old)+value)) {
			return
		}
	}
}

func (h *Histogram) total() float64 { return math.Float64frombits(h.sum.Load()) }
