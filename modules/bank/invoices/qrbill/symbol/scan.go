package symbol

import (
	"context"

	"github.com/makiuchi-d/gozxing"
)

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

// Quick makes the cheap passes: local thresholds, a global threshold, half size, and the inverse of each. It returns true
// when Stop returned true for a code.
func (s *Scan) Quick(ctx context.Context) bool {
	return s.quickFull(ctx) || s.quickHalf(ctx)
}

// Glance makes only the first of the quick passes.
func (s *Scan) Glance(ctx context.Context) bool {
	g := s.gray
	if large(g) {
		g = g.Half()
	}
	return s.pass(ctx, g, hybrid, 1)
}

func (s *Scan) quickFull(ctx context.Context) bool {
	g := s.gray
	if large(g) {
		g = g.Half() // modules have many pixels in such a picture
	}
	return s.pass(ctx, g, hybrid, 1) || s.pass(ctx, g, histogram, 1)
}

func (s *Scan) quickHalf(ctx context.Context) bool {
	if s.gray.W < 200 || s.gray.H < 200 {
		return s.pass(ctx, s.gray.Double(), hybrid, 1)
	}
	g := s.gray.Half()
	if large(s.gray) {
		g = g.Half()
	}
	return s.pass(ctx, g, hybrid, 1)
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
		if s.covered(original) {
			continue
		}
		d := decodePlain(matrix, t)
		if !d.ok && !satisfied && s.failures[original.place()] < maxFailures {
			promising := false
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

func (s *Scan) covered(t triple) bool {
	for _, c := range s.Codes {
		if c.covers(t) {
			return true
		}
	}
	return false
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
