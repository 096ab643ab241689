package engine

import (
	"encoding/binary"
	"hash/maphash"
	"math"
)

// ValueCounts holds the number of rows of each of many values: texts, numbers and NULL. A value takes about 26 bytes whatever its length,
// because a digest of 96 bits stands for it: among a million values, two share one with a probability of 10⁻¹⁷.
type ValueCounts struct {
	max   int
	seeds [2]maphash.Seed
	rows  map[valueDigest]uint32
	nulls int64
	wrong bool // a number of rows became negative
}

type valueDigest [3]uint32

// NewValueCounts returns counts of at most max values; zero is no bound.
func NewValueCounts(max int) *ValueCounts {
	return &ValueCounts{max: max, seeds: [2]maphash.Seed{maphash.MakeSeed(), maphash.MakeSeed()}, rows: map[valueDigest]uint32{}}
}

// Len returns the number of values that have rows.
func (v *ValueCounts) Len() int {
	if v.nulls > 0 {
		return len(v.rows) + 1
	}
	return len(v.rows)
}

// Valid reports that the counts can be used: neither are they full, nor did a number of rows become negative.
func (v *ValueCounts) Valid() bool { return !v.wrong && !v.Full() }

// Full reports whether there are more values than the bound.
func (v *ValueCounts) Full() bool { return v.max > 0 && v.Len() > v.max }

// AddText adds rows of a text. It returns false when a number of rows becomes negative or the counts are full.
func (v *ValueCounts) AddText(text []byte, rows int64) bool {
	return v.add(maphash.Bytes(v.seeds[0], text), maphash.Bytes(v.seeds[1], text), rows)
}

// AddNumber is AddText for a number.
func (v *ValueCounts) AddNumber(value, rows int64) bool {
	b := binary.LittleEndian.AppendUint64(make([]byte, 0, 8), uint64(value))
	return v.add(^maphash.Bytes(v.seeds[0], b), ^maphash.Bytes(v.seeds[1], b), rows) // the text of the same bytes has another digest
}

// AddNull is AddText for NULL.
func (v *ValueCounts) AddNull(rows int64) bool {
	v.nulls += rows
	v.wrong = v.wrong || v.nulls < 0
	return v.Valid()
}

// Add is AddText for a value as it was scanned. It returns false also for a value of another type.
func (v *ValueCounts) Add(value any, rows int64) bool {
	switch value := value.(type) {
	case nil:
		return v.AddNull(rows)
	case string:
		return v.add(maphash.String(v.seeds[0], value), maphash.String(v.seeds[1], value), rows)
	case int64:
		return v.AddNumber(value, rows)
	}
	v.wrong = true
	return false
}

func (v *ValueCounts) add(first, second uint64, rows int64) bool {
	key := valueDigest{uint32(first), uint32(first >> 32), uint32(second)}
	sum := int64(v.rows[key]) + rows
	switch {
	case sum < 0 || sum > math.MaxUint32:
		v.wrong = true
	case sum == 0:
		delete(v.rows, key)
	default:
		v.rows[key] = uint32(sum)
	}
	return v.Valid()
}
