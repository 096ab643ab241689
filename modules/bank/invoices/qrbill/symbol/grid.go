package symbol

import (
	"cmp"
	"math"
	"slices"
	"sort"
)

// grid maps the modules of a symbol to the picture.
type grid struct {
	*layout
	warp
}

// corners returns the module coordinates of the three finder centres.
func (l *layout) corners() [3][2]float64 {
	far := float64(l.dimension) - 3.5
	return [3][2]float64{{3.5, 3.5}, {far, 3.5}, {3.5, far}}
}

// looksLikeSymbol reports whether the three places look like finder patterns. It is cheap, and called before expensive steps. It
// uses the module size of each pattern, because sizes differ in strong perspective.
func (t triple) looksLikeSymbol(g *Gray) bool {
	right, down := t.right.minus(t.corner.point), t.down.minus(t.corner.point)
	right, down = right.times(1/right.length()), down.times(1/down.length())
	var agreement float64
	for _, f := range [3]finder{t.corner, t.right, t.down} {
		to := func(u, v float64) point {
			return f.plus(right.times(u * f.module)).plus(down.times(v * f.module))
		}
		_, score := search(g, to, finderPattern(0, 0), 0.5, 0.5)
		agreement += score
	}
	return agreement >= 3*minFinderCorrelation
}

// Minimum mean correlations of the finder patterns: for looksLikeSymbol, and for a fitted grid.
const (
	minFinderCorrelation = 0.45
	minGridCorrelation   = 0.4
)

// fitGrid fits a grid to the picture, starting from a perspective.
func fitGrid(g *Gray, l *layout, start perspective) (*grid, bool) {
	to := start.to
	matches := make([]match, 0, 64)
	var agreement float64
	for _, c := range l.corners() {
		seen, score := search(g, to, finderPattern(c[0], c[1]), 1, 0.25)
		agreement += score
		matches = append(matches, match{c[0], c[1], seen, 3})
	}
	if agreement < 3*minGridCorrelation {
		return nil, false
	}
	// A virtual fourth corner preserves the foreshortening until alignment patterns are found.
	far := float64(l.dimension) - 6.5
	virtual := match{far, far, to(far, far), 0.05}
	h, ok := fitProjection(append(matches, virtual))
	if !ok {
		return nil, false
	}
	reach := 2.0 + float64(l.dimension)/40
	for _, p := range l.alignmentPatterns() {
		seen, score := search(g, h.to, p, reach, 0.5)
		if score < 0.6 {
			continue
		}
		matches = append(matches, match{p.u, p.v, seen, score})
		if better, ok := fitProjection(append(slices.Clip(matches), virtual)); ok {
			h = better
		}
	}
	matches = dropOutliers(matches, h, virtual)
	if better, ok := fitProjection(append(slices.Clip(matches), virtual)); ok {
		h = better
	}
	out := &grid{layout: l, warp: warp{projection: *h}}
	out.fitSpline(matches, 2)
	out.refine(g)
	return out, true
}

// dropOutliers removes alignment patterns that are far from the place that the others predict.
func dropOutliers(matches []match, h *projection, virtual match) []match {
	module := h.to(4.5, 3.5).minus(h.to(3.5, 3.5)).length()
	for len(matches) > 4 {
		worst, off := -1, 2.5*module
		for i := 3; i < len(matches); i++ {
			others := append(append([]match{virtual}, matches[:i]...), matches[i+1:]...)
			fit, ok := fitProjection(others)
			if !ok {
				continue
			}
			if d := distance(fit.to(matches[i].u, matches[i].v), matches[i].seen); d > off {
				worst, off = i, d
			}
		}
		if worst < 0 {
			break
		}
		matches = append(matches[:worst:worst], matches[worst+1:]...)
	}
	return matches
}

// refine searches for every pattern again at a finer resolution, and fits the spline to the results.
func (q *grid) refine(g *Gray) {
	var knots []match
	for _, c := range q.corners() {
		seen, _ := search(g, q.to, finderPattern(c[0], c[1]), 0.5, 0.125)
		knots = append(knots, match{c[0], c[1], seen, 3})
	}
	for _, p := range q.alignmentPatterns() {
		seen, score := search(g, q.to, p, 1, 0.25)
		if score > 0.55 {
			knots = append(knots, match{p.u, p.v, seen, score})
		}
	}
	q.fitSpline(knots, 2)
}

// perspective is the projection through three finder centres, with the two remaining degrees of freedom: the foreshortening
// g and h along both edges.
type perspective struct {
	corner, right, down point
	dimension           float64
	g, h                float64
}

func (p perspective) to(u, v float64) point {
	a, b := (u-3.5)/(p.dimension-7), (v-3.5)/(p.dimension-7)
	w := 1 + p.g*a + p.h*b
	sum := p.corner.times(1 - a - b).plus(p.right.times(a * (1 + p.g))).plus(p.down.times(b * (1 + p.h)))
	return sum.times(1 / w)
}

// timingCorrelation returns the correlation of the picture with the timing pattern along one edge.
func timingCorrelation(g *Gray, p perspective, along bool) float64 {
	n := int(p.dimension)
	places, sign := make([]point, 0, 128), make([]float32, 0, 128)
	for i := 8; i < n-8; i++ {
		if along {
			places = append(places, p.to(float64(i)+0.5, 6.5))
		} else {
			places = append(places, p.to(6.5, float64(i)+0.5))
		}
		sign = append(sign, float32(i%2*2-1))
	}
	if len(places) < 3 {
		return 0
	}
	return correlation(g, places, point{}, sign)
}

// bestEdge returns the highest correlation of the timing pattern of an edge, and its foreshortening.
func bestEdge(g *Gray, p perspective, along bool) (float64, float64) {
	best, at := -1.0, 0.0
	step := 0.8 / p.dimension
	for f := -0.36; f <= 0.5; f += step {
		if along {
			p.g = f
		} else {
			p.h = f
		}
		if score := timingCorrelation(g, p, along) - 0.15*math.Abs(f); score > best {
			best, at = score, f
		}
	}
	return best, at
}

// guesses returns the perspectives to try for a triple: sizes near the estimate, those with the best timing patterns first.
// The second one is the nearest size without foreshortening, because timing patterns are unreliable on bent paper.
func guesses(g *Gray, t triple, limit int) []perspective {
	type rated struct {
		perspective
		rating, off float64
	}
	estimate := t.size() + 7
	var list []rated
	reach := 4.0 + 0.08*estimate
	for dimension := 21; dimension <= 177; dimension += 4 {
		off := math.Abs(float64(dimension) - estimate)
		if off > reach {
			continue
		}
		p := perspective{corner: t.corner.point, right: t.right.point, down: t.down.point, dimension: float64(dimension)}
		var a, b float64
		a, p.g = bestEdge(g, p, true)
		b, p.h = bestEdge(g, p, false)
		list = append(list, rated{p, a + b - 0.02*off, off})
	}
	if len(list) == 0 {
		return nil
	}
	flat := slices.MinFunc(list, func(a, b rated) int { return cmp.Compare(a.off, b.off) }).perspective
	flat.g, flat.h = 0, 0
	sort.SliceStable(list, func(i, j int) bool { return cmp.Less(list[j].rating, list[i].rating) })
	out := []perspective{list[0].perspective, flat}
	for _, r := range list[1:min(len(list), limit)] {
		out = append(out, r.perspective)
	}
	return out
}

// projection is the perspective mapping (homography) from module coordinates to the picture.
type projection [8]float64

func (h *projection) to(u, v float64) point {
	w := h[6]*u + h[7]*v + 1
	return point{(h[0]*u + h[1]*v + h[2]) / w, (h[3]*u + h[4]*v + h[5]) / w}
}

// match is a place in the symbol with the point of the picture at which it was found.
type match struct {
	u, v   float64
	seen   point
	weight float64
}

// fitProjection returns the projection that fits the matches best.
func fitProjection(matches []match) (*projection, bool) {
	// Least squares of the linear form. The second round weights by the denominator, so that errors are in pixels.
	h := projection{}
	for round := range 2 {
		system := newSystem(8)
		for _, m := range matches {
			w := m.weight
			if round > 0 {
				w /= math.Abs(h[6]*m.u+h[7]*m.v+1) + 1e-9
			}
			system.add([]float64{m.u, m.v, 1, 0, 0, 0, -m.u * m.seen.x, -m.v * m.seen.x}, m.seen.x, w*w)
			system.add([]float64{0, 0, 0, m.u, m.v, 1, -m.u * m.seen.y, -m.v * m.seen.y}, m.seen.y, w*w)
		}
		solution, ok := system.solve()
		if !ok {
			return nil, false
		}
		copy(h[:], solution)
	}
	return &h, true
}

// system is a system of linear equations for a least-squares solution.
type system struct {
	n int
	a []float64 // n rows of n+1 columns
}

func newSystem(n int) *system { return &system{n, make([]float64, n*(n+1))} }

func (s *system) add(row []float64, value, weight float64) {
	for i, x := range row {
		if x == 0 {
			continue
		}
		x *= weight
		to := s.a[i*(s.n+1):]
		for j, y := range row {
			to[j] += x * y
		}
		to[s.n] += x * value
	}
}

// solve solves the system by Gaussian elimination with pivoting.
func (s *system) solve() ([]float64, bool) {
	n, width := s.n, s.n+1
	for col := range n {
		pivot := col
		for row := col + 1; row < n; row++ {
			if math.Abs(s.a[row*width+col]) > math.Abs(s.a[pivot*width+col]) {
				pivot = row
			}
		}
		if math.Abs(s.a[pivot*width+col]) < 1e-12 {
			return nil, false
		}
		for k := range width {
			s.a[col*width+k], s.a[pivot*width+k] = s.a[pivot*width+k], s.a[col*width+k]
		}
		for row := range n {
			if row == col {
				continue
			}
			factor := s.a[row*width+col] / s.a[col*width+col]
			if factor == 0 {
				continue
			}
			for k := col; k < width; k++ {
				s.a[row*width+k] -= factor * s.a[col*width+k]
			}
		}
	}
	solution := make([]float64, n)
	for i := range solution {
		solution[i] = s.a[i*width+n] / s.a[i*width+i]
		if math.IsNaN(solution[i]) || math.IsInf(solution[i], 0) {
			return nil, false
		}
	}
	return solution, true
}

// warp is a projection with a thin-plate spline that corrects for paper that is not flat.
type warp struct {
	projection
	knots  []match // the knots of the spline
	dx, dy []float64
}

func (w *warp) to(u, v float64) point {
	p := w.projection.to(u, v)
	if len(w.dx) == 0 {
		return p
	}
	n := len(w.knots)
	p.x += w.dx[n] + w.dx[n+1]*u + w.dx[n+2]*v
	p.y += w.dy[n] + w.dy[n+1]*u + w.dy[n+2]*v
	for i := range w.knots {
		r := radial(u-w.knots[i].u, v-w.knots[i].v)
		p.x += w.dx[i] * r
		p.y += w.dy[i] * r
	}
	return p
}

// radial is the kernel of a thin-plate spline: r² log r.
func radial(du, dv float64) float64 {
	square := du*du + dv*dv
	if square == 0 {
		return 0
	}
	return square * math.Log(square) / 2
}

// fitSpline fits a thin-plate spline to the residuals of the projection. Stiffness smooths it.
func (w *warp) fitSpline(knots []match, stiffness float64) {
	n := len(knots)
	w.knots, w.dx, w.dy = nil, nil, nil
	if n < 5 {
		return
	}
	left, right := newSystem(n+3), newSystem(n+3)
	width := n + 4
	for i, k := range knots {
		p := w.projection.to(k.u, k.v)
		for j, other := range knots {
			left.a[i*width+j] = radial(k.u-other.u, k.v-other.v)
		}
		left.a[i*width+i] += stiffness / k.weight
		for j, x := range [3]float64{1, k.u, k.v} {
			left.a[i*width+n+j], left.a[(n+j)*width+i] = x, x
		}
		copy(right.a[i*width:(i+1)*width], left.a[i*width:(i+1)*width])
		left.a[i*width+n+3] = k.seen.x - p.x
		right.a[i*width+n+3] = k.seen.y - p.y
	}
	for i := n; i < n+3; i++ {
		copy(right.a[i*width:(i+1)*width], left.a[i*width:(i+1)*width])
	}
	dx, ok := left.solve()
	dy, ok2 := right.solve()
	if ok && ok2 {
		w.knots, w.dx, w.dy = knots, dx, dy
	}
}
