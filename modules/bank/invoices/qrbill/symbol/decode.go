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

// gf holds the tables of the field GF(256) with the polynomial of QR codes, x^8+x^4+x^3+x^2+1.
type gf struct {
	exp [512]byte
	log [256]int
}

var field = newField()

func newField() *gf {
	f := &gf{}
	x := 1
	for i := range 255 {
		f.exp[i], f.exp[i+255] = byte(x), byte(x)
		f.log[x] = i
		if x <<= 1; x > 255 {
			x ^= 0x11d
		}
	}
	return f
}

func (f *gf) mul(a, b byte) byte {
	if a == 0 || b == 0 {
		return 0
	}
	return f.exp[f.log[a]+f.log[b]]
}

func (f *gf) div(a, b byte) byte {
	if a == 0 {
		return 0
	}
	return f.exp[f.log[a]+255-f.log[b]]
}

// eval evaluates a polynomial whose coefficient of x^i is p[i].
func (f *gf) eval(p []byte, x byte) byte {
	var y byte
	for i := len(p) - 1; i >= 0; i-- {
		y = f.mul(y, x) ^ p[i]
	}
	return y
}

func (f *gf) product(a, b []byte) []byte {
	out := make([]byte, len(a)+len(b)-1)
	for i, x := range a {
		for j, y := range b {
			out[i+j] ^= f.mul(x, y)
		}
	}
	return out
}

// correct corrects a Reed-Solomon block, which ends with its check symbols, in place. Erasures are positions that are known
// to be unreliable; an erasure uses one check symbol, an unknown error two. It returns the number of errors outside the
// erasures. It returns false, and leaves the block unchanged, when the block has too many errors.
func (f *gf) correct(block []byte, checks int, erasures []int) (errors int, ok bool) {
	n := len(block)
	syndromes, clean := f.syndromes(block, checks)
	if clean {
		return 0, true
	}
	if len(erasures) > checks {
		return 0, false
	}
	// The erasure locator has a factor (1 - x·X) for each erased position X.
	locator := []byte{1}
	for _, position := range erasures {
		locator = f.product(locator, []byte{1, f.exp[n-1-position]})
	}
	locator = f.berlekampMassey(syndromes, locator, len(erasures))
	degree := len(locator) - 1
	if 2*(degree-len(erasures))+len(erasures) > checks {
		return 0, false
	}
	evaluator := f.product(syndromes, locator)[:checks]
	repaired := append([]byte(nil), block...)
	roots := 0
	for i := range n {
		inverse := f.exp[(255-i%255)%255]
		if f.eval(locator, inverse) != 0 {
			continue
		}
		roots++
		derivative := byte(0)
		for j := 1; j < len(locator); j += 2 {
			derivative ^= f.mul(locator[j], f.power(inverse, j-1))
		}
		if derivative == 0 {
			return 0, false
		}
		magnitude := f.mul(f.exp[i%255], f.div(f.eval(evaluator, inverse), derivative))
		repaired[n-1-i] ^= magnitude
	}
	if roots != degree {
		return 0, false
	}
	if _, clean := f.syndromes(repaired, checks); !clean {
		return 0, false
	}
	copy(block, repaired)
	return degree - len(erasures), true
}

func (f *gf) power(x byte, n int) byte {
	if n == 0 {
		return 1
	}
	return f.exp[f.log[x]*n%255]
}

func (f *gf) syndromes(block []byte, checks int) (s []byte, clean bool) {
	s, clean = make([]byte, checks), true
	for i := range s {
		var sum byte
		for _, b := range block {
			sum = f.mul(sum, f.exp[i]) ^ b
		}
		s[i] = sum
		clean = clean && sum == 0
	}
	return s, clean
}

// berlekampMassey extends an erasure locator to the locator of all errors.
func (f *gf) berlekampMassey(s, locator []byte, erased int) []byte {
	current := append([]byte(nil), locator...)
	previous := append([]byte(nil), locator...)
	length := erased
	for step := erased; step < len(s); step++ {
		previous = append([]byte{0}, previous...)
		var discrepancy byte
		for i := 0; i < len(current) && i <= step; i++ {
			discrepancy ^= f.mul(current[i], s[step-i])
		}
		if discrepancy == 0 {
			continue
		}
		next := append([]byte(nil), current...)
		for len(next) < len(previous) {
			next = append(next, 0)
		}
		for i, p := range previous {
			next[i] ^= f.mul(p, discrepancy)
		}
		if 2*length <= step+erased {
			previous = make([]byte, len(current))
			for i, c := range current {
				previous[i] = f.div(c, discrepancy)
			}
			length = step + 1 + erased - length
		}
		current = next
	}
	for len(current) > 1 && current[len(current)-1] == 0 {
		current = current[:len(current)-1]
	}
	return current
}
