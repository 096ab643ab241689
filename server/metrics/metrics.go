// Package metrics writes metrics in the text format of Prometheus (its documentation, "Exposition formats", version 0.0.4).
//
// Each package keeps its own numbers, and adds them to each [Scrape].
package metrics

import (
	"bufio"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"sort"
	"strconv"
	"strings"
	"sync/atomic"
)

// MediaType is the media type of the text format.
const MediaType = "text/plain; version=0.0.4; charset=utf-8"

// Source adds its metrics to a scrape. It may be called by several goroutines at once.
type Source func(s *Scrape)

// Write writes the metrics of all sources, ordered by their names.
func Write(w io.Writer, sources ...Source) error {
	s := &Scrape{families: map[string]*family{}}
	for _, add := range sources {
		add(s)
	}
	out := bufio.NewWriter(w)
	for _, name := range slices.Sorted(maps.Keys(s.families)) {
		f := s.families[name]
		fmt.Fprintf(out, "# HELP %s %s\n# TYPE %s %s\n", name, helpText.Replace(f.help), name, f.kind)
		out.Write(f.samples) //nolint:errcheck // Flush returns the error
	}
	return out.Flush()
}

// Scrape collects the metrics of one moment.
type Scrape struct{ families map[string]*family }

// family contains the series of one name.
type family struct {
	help, kind string
	samples    []byte // their lines
}

// Gauge adds a value that goes up and down. labels are names and values in turn.
func (s *Scrape) Gauge(name, help string, value float64, labels ...string) {
	s.family(name, help, "gauge").add(name, "", value, labels)
}

// Counter adds a value that only grows until the process ends.
func (s *Scrape) Counter(name, help string, value float64, labels ...string) {
	s.family(name, help, "counter").add(name, "", value, labels)
}

// Summary adds the number of observations and their sum.
func (s *Scrape) Summary(name, help string, count uint64, sum float64, labels ...string) {
	f := s.family(name, help, "summary")
	f.add(name, "_sum", sum, labels)
	f.add(name, "_count", float64(count), labels)
}

// Histogram adds the observations of a histogram.
func (s *Scrape) Histogram(name, help string, h *Histogram, labels ...string) {
	f := s.family(name, help, "histogram")
	var total uint64
	inBucket := append(slices.Clone(labels), "le", "")
	for i := range h.counts {
		total += h.counts[i].Load()
		inBucket[len(inBucket)-1] = "+Inf"
		if i < len(h.bounds) {
			inBucket[len(inBucket)-1] = number(h.bounds[i])
		}
		f.add(name, "_bucket", float64(total), inBucket)
	}
	f.add(name, "_sum", h.total(), labels)
	f.add(name, "_count", float64(total), labels)
}

func (s *Scrape) family(name, help, kind string) *family {
	f := s.families[name]
	if f == nil {
		f = &family{help: help, kind: kind}
		s.families[name] = f
	}
	return f
}

var (
	helpText  = strings.NewReplacer(`\`, `\\`, "\n", `\n`)
	labelText = strings.NewReplacer(`\`, `\\`, "\n", `\n`, `"`, `\"`)
)

// add adds the line of one sample.
func (f *family) add(name, suffix string, value float64, labels []string) {
	b := append(append(f.samples, name...), suffix...)
	separator := byte('{')
	for i := 0; i+1 < len(labels); i += 2 {
		b = append(append(append(b, separator), labels[i]...), `="`...)
		separator = ','
		b = append(append(b, labelText.Replace(labels[i+1])...), '"')
	}
	if len(labels) > 0 {
		b = append(b, '}')
	}
	f.samples = append(append(append(b, ' '), number(value)...), '\n')
}

// number writes a number as Prometheus reads it, infinite ones and NaN included.
func number(value float64) string { return strconv.FormatFloat(value, 'g', -1, 64) }

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
