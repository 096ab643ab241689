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
