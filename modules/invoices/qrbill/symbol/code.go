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
	// Legacy tells that the text was not UTF-8 and was read in an older character set.
	Legacy bool
	// X and Y are the centre, in shares of the width and height of the picture.
	X, Y float64
	// area in which no other symbol can lie
	center point
	radius float64
}

// decoded is the text of a symbol, if there is any.
type decoded struct {
	text       string
	legacy, ok bool
}

// newCode places a decoded text in the picture.
func newCode(g *Gray, d decoded, t triple) Code {
	center := middle(t.right.point, t.down.point)
	return Code{
		Text: d.text, Legacy: d.legacy, X: center.x / float64(g.W), Y: center.y / float64(g.H),
		center: center, radius: distance(t.right.point, t.down.point) / 2,
	}
}

// covers tells whether a triple belongs to a symbol that was already read.
func (c Code) covers(t triple) bool {
	return distance(c.center, t.corner.point) < 1.15*c.radius && distance(c.center, t.right.point) < 1.15*c.radius &&
		distance(c.center, t.down.point) < 1.15*c.radius
}

// decodePlain lets gozxing sample and decode the symbol at three finder patterns.
func decodePlain(m *gozxing.BitMatrix, t triple) (code decoded) {
	defer func() {
		// The library was not written for hostile input; a panic in it is a code not read.
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

// decodeTriple reads the symbol at three finder patterns by the own path. Without
// a text it tells whether there seems to be a symbol at all.
func decodeTriple(g *Gray, t triple, effort int) (code decoded, promising bool) {
	if !t.convincing(g) {
		return code, false
	}
	for i, start := range guesses(g, t, effort) {
		l := newLayout(int(start.dimension))
		if l == nil {
			continue
		}
		q, ok := lay(g, l, start)
		if !ok || !q.plausible(g) {
			continue
		}
		raw := q.sample(g)
		if raw.normalize(3).agreement() < leastAgreement {
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

// leastAgreement is the share of known modules with the right colour below which
// a triple is taken for a chance resemblance, of which half would agree.
const leastAgreement = 0.66

// agreement is the share of modules with fixed values that show them.
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

// plausible refuses grids that leave the picture or collapse.
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
	return area > n*n // at least a pixel a module
}

// decode tries several ways to tell dark from light modules.
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

// decodeRanked judges each module by its brightest or darkest parts instead of
// its middle: thin strokes of a pen leave some of a light module bright, and
// scratches leave some of a dark one black.
func (q *grid) decodeRanked(g *Gray) ([]byte, bool) {
	ranked := q.rank(g)
	for _, s := range ranked {
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
