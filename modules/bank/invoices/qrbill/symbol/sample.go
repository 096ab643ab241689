package symbol

import (
	"context"
	"math"
	"slices"

	"github.com/makiuchi-d/gozxing"
)

// samples are brightness values at a resolution of half a module: the centre of module (row, col) is at
// (2·row+1, 2·col+1).
type samples struct {
	*layout
	side  int
	value []float32
}

// sample returns the brightness of the picture at the grid.
func (q *grid) sample(g *Gray) *samples {
	s := &samples{layout: q.layout, side: 2*q.dimension + 1}
	s.value = make([]float32, s.side*s.side)
	// The mapping is smooth: compute it once per module and interpolate in between.
	n := q.dimension + 1
	nodes := make([]point, n*n)
	for r := range n {
		for c := range n {
			nodes[r*n+c] = q.to(float64(c), float64(r))
		}
	}
	inner := [4]point{{-0.15, -0.15}, {0.15, -0.15}, {-0.15, 0.15}, {0.15, 0.15}}
	for y := range s.side {
		for x := range s.side {
			r, c := min(y/2, n-2), min(x/2, n-2)
			fy, fx := float64(y)/2-float64(r), float64(x)/2-float64(c)
			corner, right, down := nodes[r*n+c], nodes[r*n+c+1].minus(nodes[r*n+c]), nodes[(r+1)*n+c].minus(nodes[r*n+c])
			twist := nodes[(r+1)*n+c+1].minus(nodes[(r+1)*n+c]).minus(right)
			p := corner.plus(right.times(fx)).plus(down.times(fy)).plus(twist.times(fx * fy))
			var sum float32
			for _, i := range inner {
				sum += g.at(p.x+right.x*i.x+down.x*i.y, p.y+right.y*i.x+down.y*i.y)
			}
			s.value[y*s.side+x] = sum / 4
		}
	}
	return s
}

// rankSide is the number of samples per side in each module, see rank.
const rankSide = 5

// rank returns three sets of samples: the 80 % quantile, the 20 % quantile and the mean of each module. It fills only the
// centres of the modules.
func (q *grid) rank(g *Gray) [3]*samples {
	var out [3]*samples
	for i := range out {
		out[i] = &samples{layout: q.layout, side: 2*q.dimension + 1}
		out[i].value = make([]float32, out[i].side*out[i].side)
	}
	var seen [rankSide * rankSide]float32
	for r := range q.dimension {
		for c := range q.dimension {
			center := q.to(float64(c)+0.5, float64(r)+0.5)
			right := q.to(float64(c)+1, float64(r)+0.5).minus(center).times(2)
			down := q.to(float64(c)+0.5, float64(r)+1).minus(center).times(2)
			var sum float32
			for i := range seen {
				x := 0.8 * ((float64(i%rankSide)+0.5)/rankSide - 0.5)
				y := 0.8 * ((float64(i/rankSide)+0.5)/rankSide - 0.5)
				p := center.plus(right.times(x)).plus(down.times(y))
				seen[i] = g.at(p.x, p.y)
				sum += seen[i]
			}
			slices.Sort(seen[:])
			at := (2*r+1)*out[0].side + 2*c + 1
			out[0].value[at] = seen[len(seen)*4/5]
			out[1].value[at] = seen[len(seen)/5]
			out[2].value[at] = sum / float32(len(seen))
		}
	}
	return out
}

// minContrast is the minimum half range of shades around a module.
const minContrast = 5

// normalize maps dark samples to about +1 and light samples to about -1, relative to the range of the surroundings. radius
// is in modules.
func (s *samples) normalize(radius int) *samples {
	n := s.dimension
	centers := s.centers()
	low := slide(slide(centers, n, radius, slices.Min), n, radius, mean)
	high := slide(slide(centers, n, radius, slices.Max), n, radius, mean)
	out := &samples{layout: s.layout, side: s.side, value: make([]float32, len(s.value))}
	for y := range s.side {
		for x := range s.side {
			at := min(y/2, n-1)*n + min(x/2, n-1)
			half := max((high[at]-low[at])/2, minContrast)
			v := ((high[at]+low[at])/2 - s.value[y*s.side+x]) / half
			out.value[y*s.side+x] = max(-1.6, min(1.6, v))
		}
	}
	return out
}

// slide folds the values within radius of each value, first along rows and then along columns.
func slide(values []float32, n, radius int, fold func(near []float32) float32) []float32 {
	for range 2 {
		next := make([]float32, n*n)
		for r := range n {
			for c := range n {
				next[c*n+r] = fold(values[r*n+max(c-radius, 0) : r*n+min(c+radius+1, n)]) // mirrored: the second round folds the columns
			}
		}
		values = next
	}
	return values
}

func mean(values []float32) float32 {
	var sum float32
	for _, v := range values {
		sum += v
	}
	return sum / float32(len(values))
}

// centers returns the values at the centres of the modules.
func (s *samples) centers() []float32 {
	n := s.dimension
	out := make([]float32, n*n)
	for r := range n {
		for c := range n {
			out[r*n+c] = s.value[(2*r+1)*s.side+2*c+1]
		}
	}
	return out
}

// transposed mirrors values at the main diagonal, for a mirrored code.
func transposed(values []float32) []float32 {
	n := int(math.Sqrt(float64(len(values))))
	out := make([]float32, len(values))
	for r := range n {
		for c := range n {
			out[c*n+r] = values[r*n+c]
		}
	}
	return out
}

// Scan collects the codes of one picture over several passes.
type Scan struct {
	Codes []Code
	// Stop reports whether a code is the wanted one. After such a code, the pass reads only clear codes, and no other pass is
	// made. With nil, all passes are made.
	Stop func(Code) bool
	// Evidence counts the candidates for codes.
	Evidence int
	gray     *Gray
	failures map[[6]int]int // by place: how often it did not look like a symbol
}

// maxFailures is how often a place is tried that does not look like a symbol.
const maxFailures = 2

// NewScan returns a scan of a picture.
func NewScan(g *Gray) *Scan { return &Scan{gray: g, failures: map[[6]int]int{}} }

// Glance makes only the first of the quick passes.
func (s *Scan) Glance(ctx context.Context) bool {
	g := s.gray
	if large(g) {
		g = g.Half()
	}
	return s.pass(ctx, g, hybrid, 1)
}

// Quick makes the cheap passes: local thresholds, a global threshold, half size, and the inverse of each. It returns true
// when Stop returned true for a code.
func (s *Scan) Quick(ctx context.Context) bool {
	g := s.gray
	if large(g) {
		g = g.Half() // modules have many pixels in such a picture
	}
	if s.pass(ctx, g, hybrid, 1) || s.pass(ctx, g, histogram, 1) {
		return true
	}
	if s.gray.W < 200 || s.gray.H < 200 {
		return s.pass(ctx, s.gray.Double(), hybrid, 1)
	}
	return s.pass(ctx, g.Half(), hybrid, 1)
}

// large reports whether a picture is large enough to be read at half its size, as photos are.
func large(g *Gray) bool { return g.W*g.H > 5_000_000 }

// Thorough makes the expensive passes, each on another version of the picture.
func (s *Scan) Thorough(ctx context.Context) bool {
	for _, g := range s.versions() {
		picture := g()
		if picture == nil {
			continue
		}
		for _, binarize := range []func(*Gray) (*gozxing.BitMatrix, error){hybrid, histogram} {
			if s.pass(ctx, picture, binarize, 3) {
				return true
			}
			if ctx.Err() != nil {
				return false
			}
		}
	}
	return false
}

// versions returns functions that make the pictures for the expensive passes.
func (s *Scan) versions() []func() *Gray {
	g := s.gray
	for large(g) {
		g = g.Half()
	}
	return []func() *Gray{
		func() *Gray { return g },
		// Ink is usually lighter than print: keep only the darkest shades.
		func() *Gray { dark := g.shade(0.03); return g.Stretch(dark, dark+50) },
		// Where ink covers print, the module is unknown: map the shade of the ink to the middle.
		func() *Gray {
			if dark, ink, ok := g.ink(); ok {
				return g.Stretch(dark, 2*ink-dark)
			}
			return nil
		},
		func() *Gray { return g.Blur().Half() },
		func() *Gray { return g.Flatten(max(g.W, g.H) / 40) },
		func() *Gray { return g.Sharpen(3, 2) },
		func() *Gray { return g.Blur().Blur() },
		func() *Gray {
			if g.W*g.H > 1_500_000 {
				return nil
			}
			return g.Double()
		},
	}
}

// pass searches one version of the picture for dark codes on light ground, and then for light codes on dark ground.
func (s *Scan) pass(ctx context.Context, g *Gray, binarize func(*Gray) (*gozxing.BitMatrix, error), effort int) bool {
	if g.W < 21 || g.H < 21 {
		return false
	}
	matrix, err := binarize(g)
	if err != nil {
		return false // a picture without contrast
	}
	bits := toBitmap(matrix)
	if s.read(ctx, g, matrix, findFinders(bits), effort) {
		return true
	}
	if len(s.Codes) > 0 && effort == 1 {
		return false
	}
	bits.invert()
	negative := g.negative()
	matrix.FlipAll()
	return s.read(ctx, negative, matrix, findFinders(bits), effort)
}

// read decodes the symbols at the finder patterns. It returns true when Stop returned true for a code.
func (s *Scan) read(ctx context.Context, g *Gray, matrix *gozxing.BitMatrix, found []finder, effort int) bool {
	scale := float64(s.gray.W) / float64(g.W)
	candidates := triples(found, 6*effort)
	if effort > 1 {
		candidates = append(candidates, completeTriples(g, found)...)
	}
	s.Evidence += len(candidates)
	satisfied := false
	for _, t := range candidates {
		if ctx.Err() != nil {
			break
		}
		original := t.scaled(scale) // in the coordinates of the original picture
		if slices.ContainsFunc(s.Codes, func(c Code) bool { return c.covers(original) }) {
			continue
		}
		d := decodePlain(matrix, t)
		if !d.ok && !satisfied && s.failures[original.place()] < maxFailures {
			var promising bool
			if d, promising = decodeTriple(g, t, effort); !promising {
				s.failures[original.place()]++
			}
		}
		if !d.ok {
			continue
		}
		code := newCode(s.gray, d, original)
		s.Codes = append(s.Codes, code)
		satisfied = satisfied || (s.Stop != nil && s.Stop(code))
	}
	return satisfied
}

// place returns the rounded position of a triple, which is the same in all versions of a picture.
func (t triple) place() [6]int {
	const unit = 16 // pixels
	return [6]int{
		int(t.corner.x / unit), int(t.corner.y / unit), int(t.right.x / unit),
		int(t.right.y / unit), int(t.down.x / unit), int(t.down.y / unit),
	}
}

// scaled maps a triple to a picture of another size.
func (t triple) scaled(f float64) triple {
	for _, p := range []*finder{&t.corner, &t.right, &t.down} {
		p.point, p.module = p.times(f), p.module*f
	}
	return t
}

// negative returns the picture with dark and light exchanged.
func (g *Gray) negative() *Gray {
	out := NewGray(g.W, g.H)
	for i, p := range g.Pix {
		out.Pix[i] = 255 - p
	}
	return out
}
