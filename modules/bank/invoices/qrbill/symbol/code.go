package symbol

import (
	"math"

	"github.com/makiuchi-d/gozxing"
	"github.com/makiuchi-d/gozxing/qrcode/decoder"
	"github.com/makiuchi-d/gozxing/qrcode/detector"
)

// Code is a decoded symbol.
type Code struct {
	Text string
	// Legacy reports that the text was not UTF-8 and was decoded with an older character set.
	Legacy bool
	// X and Y are the centre, relative to the width and height of the picture.
	X, Y float64
	// center and radius are the area that the symbol occupies.
	center point
	radius float64
}

// decoded is the text of a symbol. ok is false without a text.
type decoded struct {
	text       string
	legacy, ok bool
}

// newCode returns a decoded text with its position in the picture.
func newCode(g *Gray, d decoded, t triple) Code {
	center := middle(t.right.point, t.down.point)
	return Code{
		Text: d.text, Legacy: d.legacy, X: center.x / float64(g.W), Y: center.y / float64(g.H),
		center: center, radius: distance(t.right.point, t.down.point) / 2,
	}
}

// covers reports whether a triple belongs to the symbol.
func (c Code) covers(t triple) bool {
	return distance(c.center, t.corner.point) < 1.15*c.radius && distance(c.center, t.right.point) < 1.15*c.radius &&
		distance(c.center, t.down.point) < 1.15*c.radius
}

// decodePlain samples and decodes the symbol at three finder patterns with gozxing.
func decodePlain(m *gozxing.BitMatrix, t triple) (code decoded) {
	defer func() {
		// The library panics on some malformed input.
		if recover() != nil {
			code = decoded{}
		}
	}()
	info := detector.NewFinderPatternInfo(toPattern(t.down), toPattern(t.corner), toPattern(t.right))
	found, err := detector.NewDetector(m).ProcessFinderPatternInfo(info)
	if err != nil {
		return code
	}
	dimension := found.GetBits().GetHeight()
	result, err := decoder.NewDecoder().Decode(found.GetBits(), nil)
	if err != nil {
		return code
	}
	code.text, code.legacy, code.ok = readText(result.GetRawBytes(), (dimension-17)/4)
	return code
}

func toPattern(f finder) *detector.FinderPattern {
	return detector.NewFinderPattern1(f.x, f.y, f.module)
}

// decodeTriple decodes the symbol at three finder patterns with the algorithms of this package. promising reports whether
// the place looks like a symbol, even if no text was decoded.
func decodeTriple(g *Gray, t triple, effort int) (code decoded, promising bool) {
	if !t.looksLikeSymbol(g) {
		return code, false
	}
	for i, start := range guesses(g, t, effort) {
		l := newLayout(int(start.dimension))
		if l == nil {
			continue
		}
		q, ok := fitGrid(g, l, start)
		if !ok || !q.plausible(g) {
			continue
		}
		raw := q.sample(g)
		if raw.normalize(3).agreement() < minAgreement {
			continue
		}
		promising = true
		data, ok := raw.decode(max(effort-i, 1))
		if !ok && effort > 1 {
			data, ok = q.decodeRanked(g)
		}
		if !ok {
			continue
		}
		if code.text, code.legacy, code.ok = readText(data, l.version.GetVersionNumber()); code.ok {
			return code, true
		}
	}
	return code, promising
}

// minAgreement is the minimum share of modules with fixed values that must have the right colour. By chance, half of them
// have it.
const minAgreement = 0.66

// agreement returns the share of modules with fixed values that have the right colour.
func (s *samples) agreement() float64 {
	right, all := 0, 0
	for i, v := range s.centers() {
		if k := s.known[i]; k != 0 {
			all++
			if (v > 0) == (k > 0) {
				right++
			}
		}
	}
	return float64(right) / float64(all)
}

// plausible reports whether the grid is inside the picture and not degenerate.
func (q *grid) plausible(g *Gray) bool {
	n := float64(q.dimension)
	a, b, c, d := q.to(0, 0), q.to(n, 0), q.to(n, n), q.to(0, n)
	margin := 0.1 * distance(a, c)
	area := 0.0
	for i, p := range [4]point{a, b, c, d} {
		if !g.inside(p, margin) || math.IsNaN(p.x) || math.IsNaN(p.y) {
			return false
		}
		next := [4]point{a, b, c, d}[(i+1)%4]
		area += p.cross(next) / 2
	}
	return area > n*n // at least one pixel per module
}

// decode decodes the symbol with several thresholds and filters.
func (s *samples) decode(effort int) ([]byte, bool) {
	radii := []int{3, 6}
	if effort > 2 {
		radii = []int{3, 6, 12, 2}
	}
	for _, radius := range radii {
		level := s.normalize(radius)
		values := level.centers()
		if data, ok := decodeBoth(s.layout, values); ok {
			return data, true
		}
		sharper, ok := level.equalize(s.known)
		if !ok {
			continue
		}
		if data, ok := decodeBoth(s.layout, sharper); ok {
			return data, true
		}
		for range effort - 1 {
			if sharper, ok = level.equalize(s.decided(sharper, 0.4)); !ok {
				break
			}
			if data, ok := decodeBoth(s.layout, sharper); ok {
				return data, true
			}
		}
	}
	return nil, false
}

// decodeRanked decodes the symbol by the brightest or darkest parts of each module instead of its centre. Thin pen strokes
// leave part of a light module bright, and scratches leave part of a dark module dark.
func (q *grid) decodeRanked(g *Gray) ([]byte, bool) {
	for _, s := range q.rank(g) {
		if data, ok := decodeBoth(q.layout, s.normalize(3).centers()); ok {
			return data, true
		}
	}
	return nil, false
}

// decodeBoth decodes the symbol as it is and, if that fails, mirrored.
func decodeBoth(l *layout, values []float32) ([]byte, bool) {
	if data, ok := decodeSoft(l, values); ok {
		return data, true
	}
	return decodeSoft(l, transposed(values))
}

// layout describes the modules of a symbol of one version.
type layout struct {
	version   *decoder.Version
	dimension int
	centers   []int   // coordinates of the alignment patterns
	known     []int8  // by module: +1 dark, -1 light where the value is fixed, 0 elsewhere
	function  []bool  // by module: holds no data
	data      []int32 // modules of the data bits in reading order
}

const dark, light = 1, -1

// newLayout returns the layout of symbols with the given number of modules per side, or nil when no version has it.
func newLayout(dimension int) *layout {
	version, err := decoder.Version_GetProvisionalVersionForDimension(dimension)
	if err != nil {
		return nil
	}
	l := &layout{
		version: version, dimension: dimension, centers: version.GetAlignmentPatternCenters(),
		known: make([]int8, dimension*dimension), function: make([]bool, dimension*dimension),
	}
	l.timing()
	l.finders()
	l.alignments()
	l.formatAreas()
	l.order()
	return l
}

func (l *layout) set(row, col int, value int8) {
	if row < 0 || col < 0 || row >= l.dimension || col >= l.dimension {
		return
	}
	l.known[row*l.dimension+col] = value
	l.function[row*l.dimension+col] = true
}

func (l *layout) timing() {
	for i := range l.dimension {
		value := int8(light)
		if i%2 == 0 {
			value = dark
		}
		l.set(6, i, value)
		l.set(i, 6, value)
	}
}

// finders sets the three finder patterns with their light margins.
func (l *layout) finders() {
	last := l.dimension - 7
	for _, at := range [3][2]int{{0, 0}, {0, last}, {last, 0}} {
		for r := -1; r <= 7; r++ {
			for c := -1; c <= 7; c++ {
				l.set(at[0]+r, at[1]+c, ringValue(max(abs(r-3), abs(c-3)), 1, 3))
			}
		}
	}
}

// ringValue returns the value at a distance from the centre of a pattern with a dark core of radius core and a dark ring.
func ringValue(distance, core, ring int) int8 {
	if distance <= core || distance == ring {
		return dark
	}
	return light
}

func (l *layout) alignments() {
	for _, at := range l.alignmentCenters() {
		for r := -2; r <= 2; r++ {
			for c := -2; c <= 2; c++ {
				l.set(at[0]+r, at[1]+c, ringValue(max(abs(r), abs(c)), 0, 2))
			}
		}
	}
}

// alignmentCenters returns row and column of the centre module of each alignment pattern, those near the upper left first, because each
// one improves the prediction of the next.
func (l *layout) alignmentCenters() [][2]int {
	var list [][2]int
	last := len(l.centers) - 1
	for sum := range 2*last + 1 {
		for i, row := range l.centers {
			j := sum - i
			if j < 0 || j > last || (i == 0 && (j == 0 || j == last)) || (i == last && j == 0) {
				continue // a finder pattern is there
			}
			list = append(list, [2]int{row, l.centers[j]})
		}
	}
	return list
}

// alignmentPatterns returns the alignment patterns in this order.
func (l *layout) alignmentPatterns() (patterns []pattern) {
	for _, at := range l.alignmentCenters() {
		patterns = append(patterns, ringPattern(float64(at[1])+0.5, float64(at[0])+0.5, 2, 0, 2))
	}
	return patterns
}

// formatAreas marks the modules of the format and version information, whose values are not fixed.
func (l *layout) formatAreas() {
	for _, copies := range formatPlaces(l.dimension) {
		for _, at := range copies {
			l.set(at[0], at[1], 0)
		}
	}
	l.set(l.dimension-8, 8, dark)
	if l.version.GetVersionNumber() < 7 {
		return
	}
	for i := range 18 {
		l.set(i/3, l.dimension-11+i%3, 0)
		l.set(l.dimension-11+i%3, i/3, 0)
	}
}

// formatPlaces returns the modules of the two copies of the 15 format bits, the highest bit first.
func formatPlaces(dimension int) [2][15][2]int {
	var places [2][15][2]int
	for i := range 15 {
		switch {
		case i < 6:
			places[0][i] = [2]int{8, i}
		case i < 8:
			places[0][i] = [2]int{8, i + 1}
		case i == 8:
			places[0][i] = [2]int{7, 8}
		default:
			places[0][i] = [2]int{14 - i, 8}
		}
		if i < 7 {
			places[1][i] = [2]int{dimension - 1 - i, 8}
		} else {
			places[1][i] = [2]int{8, dimension - 15 + i}
		}
	}
	return places
}

// order sets the data modules in reading order: pairs of columns from the right, alternately upwards and downwards, without
// the vertical timing pattern.
func (l *layout) order() {
	n, up := l.dimension, true
	for right := n - 1; right > 0; right -= 2 {
		if right == 6 {
			right--
		}
		for step := range n {
			row := step
			if up {
				row = n - 1 - step
			}
			for col := right; col > right-2; col-- {
				if at := row*n + col; !l.function[at] {
					l.data = append(l.data, int32(at))
				}
			}
		}
		up = !up
	}
}

// masked reports whether a data mask inverts a module.
func masked(mask, row, col int) bool {
	switch mask {
	case 0:
		return (row+col)%2 == 0
	case 1:
		return row%2 == 0
	case 2:
		return col%3 == 0
	case 3:
		return (row+col)%3 == 0
	case 4:
		return (row/2+col/3)%2 == 0
	case 5:
		return row*col%2+row*col%3 == 0
	case 6:
		return (row*col%2+row*col%3)%2 == 0
	default:
		return ((row+col)%2+row*col%3)%2 == 0
	}
}

func abs(n int) int {
	if n < 0 {
		return -n
	}
	return n
}
