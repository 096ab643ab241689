package symbol

import (
	"cmp"
	"slices"
	"sort"

	"github.com/makiuchi-d/gozxing/qrcode/decoder"
)

// spareChecks is the number of check symbols that must remain unused when uncertain codewords are declared as erasures. Each
// reduces the probability of a wrong correction by a factor of 256.
const spareChecks = 4

// decodeSoft decodes a symbol from values (soft decisions): the sign is positive for dark modules, the magnitude is the
// certainty.
func decodeSoft(l *layout, values []float32) ([]byte, bool) {
	for _, format := range bestFormats(l, values, 2) {
		if data, ok := decodeFormat(l, values, format); ok {
			return data, true
		}
	}
	return nil, false
}

// formatBits returns the 15 bits of format information for 5 bits of level and mask.
func formatBits(data int) int {
	rest := data << 10
	for i := 14; i >= 10; i-- {
		if rest&(1<<i) != 0 {
			rest ^= 0x537 << (i - 10)
		}
	}
	return (data<<10 | rest) ^ 0x5412
}

// bestFormats returns the most likely format values (5 bits: level and mask).
func bestFormats(l *layout, values []float32, count int) []int {
	type guess struct {
		data  int
		score float32
	}
	guesses := make([]guess, 32)
	places := formatPlaces(l.dimension)
	for data := range guesses {
		guesses[data].data = data
		code := formatBits(data)
		for i := range 15 {
			for c := range places {
				v := values[places[c][i][0]*l.dimension+places[c][i][1]]
				v = max(-1, min(1, v))
				if code&(1<<(14-i)) == 0 {
					v = -v
				}
				guesses[data].score += v
			}
		}
	}
	sort.Slice(guesses, func(i, j int) bool { return cmp.Less(guesses[j].score, guesses[i].score) })
	best := make([]int, 0, count)
	for _, g := range guesses[:count] {
		best = append(best, g.data)
	}
	return best
}

// codeword is a byte of the symbol with its certainty.
type codeword struct {
	value     byte
	certainty float32
}

func decodeFormat(l *layout, values []float32, format int) ([]byte, bool) {
	level, err := decoder.ErrorCorrectionLevel_ForBits(uint(format >> 3))
	if err != nil {
		return nil, false
	}
	words := readCodewords(l, values, format&7)
	blocks := deinterleave(l.version.GetECBlocksForLevel(level), words)
	var data []byte
	for _, b := range blocks {
		repaired, ok := repair(b.words, b.checks)
		if !ok {
			return nil, false
		}
		data = append(data, repaired[:len(repaired)-b.checks]...)
	}
	return data, true
}

func readCodewords(l *layout, values []float32, mask int) []codeword {
	words := make([]codeword, l.version.GetTotalCodewords())
	for i := range words {
		certainty := float32(1e9)
		var value byte
		for _, at := range l.data[8*i : 8*i+8] {
			v := values[at]
			if masked(mask, int(at)/l.dimension, int(at)%l.dimension) {
				v = -v
			}
			value <<= 1
			if v > 0 {
				value |= 1
			} else {
				v = -v
			}
			certainty = min(certainty, v)
		}
		words[i] = codeword{value, certainty}
	}
	return words
}

type block struct {
	words  []codeword
	checks int
}

// deinterleave distributes the codewords to the error correction blocks.
func deinterleave(ec *decoder.ECBlocks, words []codeword) []block {
	var blocks []block
	var lengths []int
	for _, group := range ec.GetECBlocks() {
		for range group.GetCount() {
			blocks = append(blocks, block{checks: ec.GetECCodewordsPerBlock()})
			lengths = append(lengths, group.GetDataCodewords())
		}
	}
	next := 0
	appendNext := func(b int) {
		if next < len(words) {
			blocks[b].words = append(blocks[b].words, words[next])
			next++
		}
	}
	longest := slices.Max(lengths)
	for i := range longest {
		for b := range blocks {
			if i < lengths[b] {
				appendNext(b)
			}
		}
	}
	for range ec.GetECCodewordsPerBlock() {
		for b := range blocks {
			appendNext(b)
		}
	}
	return blocks
}

// repair corrects a block: first without erasures, then with an increasing number of its least certain codewords as
// erasures.
func repair(words []codeword, checks int) ([]byte, bool) {
	bytes := make([]byte, len(words))
	for i, w := range words {
		bytes[i] = w.value
	}
	if _, ok := field.correct(bytes, checks, nil); ok {
		return bytes, true
	}
	uncertain := make([]int, len(words))
	for i := range uncertain {
		uncertain[i] = i
	}
	slices.SortFunc(uncertain, func(a, b int) int { return cmp.Compare(words[a].certainty, words[b].certainty) })
	for erased := 2; erased <= checks-spareChecks; erased += 2 {
		errors, ok := field.correct(bytes, checks, uncertain[:erased])
		if ok && erased+2*errors <= checks-spareChecks {
			return bytes, true
		}
		if ok { // too few spare check symbols: the correction may be wrong
			for i, w := range words {
				bytes[i] = w.value
			}
		}
	}
	return nil, false
}
