package symbol

import (
	"cmp"
	"math"
	"slices"
)

// grid is a symbol laid over the picture.
type grid struct {
	*layout
	warp
}

// pattern is a group of modules with known values, around a centre.
type pattern struct {
	u, v   float64 // centre, in modules
	offset []point
	sign   []float32
}

func ringPattern(u, v float64, reach, heart, ring int) pattern {
	p := pattern{u: u, v: v}
	for r := -reach; r <= reach; r++ {
		for c := -reach; c <= reach; c++ {
			p.offset = append(p.offset, point{float64(c), float64(r)})
			p.sign = append(p.sign, -float32(ringValue(max(abs(r), abs(c)), heart, ring)))
		}
	}
	return p
}

func finderPattern(u, v float64) pattern    { return ringPattern(u, v, 4, 1, 3) }
func alignmentPattern(u, v float64) pattern { return ringPattern(u, v, 2, 0, 2) }

// likeness correlates the picture at the given places with the expected values:
// 1 for perfect agreement, 0 for none.
func likeness(g *Gray, places []point, shift point, sign []float32) float64 {
	var sum, squares, with, signs float32
	for i, p := range places {
		v := g.at(p.x+shift.x, p.y+shift.y)
		sum += v
		squares += v * v
		with += v * sign[i]
		signs += sign[i]
	}
	n := float32(len(places))
	spread := squares - sum*sum/n
	expected := n - signs*signs/n
	if spread < n*9 || expected <= 0 { // less contrast than three shades of grey
		return 0
	}
	return float64((with - sum*signs/n) / float32(math.Sqrt(float64(spread*expected))))
}

// search looks for a pattern around the place where the mapping expects it. It
// returns the place of the best agreement.
func search(g *Gray, to func(u, v float64) point, p pattern, reach, step float64) (point, float64) {
	places := make([]point, len(p.offset))
	for i, o := range p.offset {
		places[i] = to(p.u+o.x, p.v+o.y)
	}
	center := to(p.u, p.v)
	right := to(p.u+0.5, p.v).minus(to(p.u-0.5, p.v))
	down := to(p.u, p.v+0.5).minus(to(p.u, p.v-0.5))
	best, at := -1.0, center
	n := int(math.Round(reach / step))
	for i := -n; i <= n; i++ {
		for j := -n; j <= n; j++ {
			a, b := float64(j)*step, float64(i)*step
			shift := right.times(a).plus(down.times(b))
			// Among equals the nearest wins.
			like := likeness(g, places, shift, p.sign) - 0.01*math.Hypot(a, b)
			if like > best {
				best, at = like, center.plus(shift)
			}
		}
	}
	return at, best
}

// perspective is the projection fixed by three finder centres and the two
// remaining degrees of freedom: the foreshortening along both edges.
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

// timingLikeness correlates the picture with a timing pattern along one edge.
func timingLikeness(g *Gray, p perspective, along bool) float64 {
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
	return likeness(g, places, point{}, sign)
}

// bestEdge finds the foreshortening with which the timing pattern of an edge agrees best.
func bestEdge(g *Gray, p perspective, along bool) (float64, float64) {
	best, at := -1.0, 0.0
	step := 0.8 / p.dimension
	for f := -0.36; f <= 0.5; f += step {
		if along {
			p.g = f
		} else {
			p.h = f
		}
		if like := timingLikeness(g, p, along) - 0.15*math.Abs(f); like > best {
			best, at = like, f
		}
	}
	return best, at
}

// guesses lists the perspectives to try for a triple: sizes near the estimate,
// those with the best timing patterns first. Behind the first of them stands the
// nearest size without any foreshortening, because on bent paper the timing
// patterns mislead.
func guesses(g *Gray, t triple, most int) []perspective {
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
	slices.SortStableFunc(list, func(a, b rated) int { return cmp.Compare(b.rating, a.rating) })
	out := []perspective{list[0].perspective, flat}
	for _, r := range list[1:min(len(list), most)] {
		out = append(out, r.perspective)
	}
	return out
}

// corners are the modules of the three finder centres.
func (l *layout) corners() [3][2]float64 {
	far := float64(l.dimension) - 3.5
	return [3][2]float64{{3.5, 3.5}, {far, 3.5}, {3.5, far}}
}

// convincing tells whether the three places look like finder patterns at all,
// before anything dear is done. Each is judged at its own size, for in strong
// perspective they differ.
func (t triple) convincing(g *Gray) bool {
	right, down := t.right.minus(t.corner.point), t.down.minus(t.corner.point)
	right, down = right.times(1/right.length()), down.times(1/down.length())
	var agreement float64
	for _, f := range [3]finder{t.corner, t.right, t.down} {
		to := func(u, v float64) point {
			return f.plus(right.times(u * f.module)).plus(down.times(v * f.module))
		}
		_, like := search(g, to, finderPattern(0, 0), 0.5, 0.5)
		agreement += like
	}
	return agreement >= 3*leastResemblance
}

// leastResemblance is the agreement for convincing, leastLikeness for the fitted grid.
const (
	leastResemblance = 0.45
	leastLikeness    = 0.4
)

// lay fits a grid to the picture, starting from a perspective.
func lay(g *Gray, l *layout, start perspective) (*grid, bool) {
	to := start.to
	matches := make([]match, 0, 64)
	var agreement float64
	for _, c := range l.corners() {
		seen, like := search(g, to, finderPattern(c[0], c[1]), 1, 0.25)
		agreement += like
		matches = append(matches, match{c[0], c[1], seen, 3})
	}
	if agreement < 3*leastLikeness {
		return nil, false
	}
	// A virtual fourth corner keeps the foreshortening until alignment patterns are found.
	far := float64(l.dimension) - 6.5
	virtual := match{far, far, to(far, far), 0.05}
	h, ok := fitProjection(append(matches, virtual))
	if !ok {
		return nil, false
	}
	reach := 2.0 + float64(l.dimension)/40
	for _, c := range l.alignmentsFromCorner() {
		seen, like := search(g, h.to, alignmentPattern(c[0], c[1]), reach, 0.5)
		if like < 0.6 {
			continue
		}
		matches = append(matches, match{c[0], c[1], seen, like})
		if better, ok := fitProjection(append(matches[:len(matches):len(matches)], virtual)); ok {
			h = better
		}
	}
	matches = dropOutliers(matches, h, virtual)
	if better, ok := fitProjection(append(matches[:len(matches):len(matches)], virtual)); ok {
		h = better
	}
	out := &grid{layout: l, warp: warp{projection: *h}}
	out.bend(matches, 2)
	out.polish(g)
	return out, true
}

// alignmentsFromCorner lists the alignment patterns, those near the upper left first,
// because every one found makes the prediction of the next better.
func (l *layout) alignmentsFromCorner() [][2]float64 {
	var list [][2]float64
	for sum := 0; sum <= 2*len(l.centers); sum++ {
		for i, row := range l.centers {
			for j, col := range l.centers {
				last := len(l.centers) - 1
				if i+j != sum || (i == 0 && (j == 0 || j == last)) || (i == last && j == 0) {
					continue
				}
				list = append(list, [2]float64{float64(col) + 0.5, float64(row) + 0.5})
			}
		}
	}
	return list
}

// dropOutliers removes alignment patterns that stray far from where the others put them.
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

// polish looks for every pattern once more, closely, and bends the grid to it.
func (q *grid) polish(g *Gray) {
	var knots []match
	for _, c := range q.corners() {
		seen, _ := search(g, q.to, finderPattern(c[0], c[1]), 0.5, 0.125)
		knots = append(knots, match{c[0], c[1], seen, 3})
	}
	for _, c := range q.alignmentsFromCorner() {
		seen, like := search(g, q.to, alignmentPattern(c[0], c[1]), 1, 0.25)
		if like > 0.55 {
			knots = append(knots, match{c[0], c[1], seen, like})
		}
	}
	q.bend(knots, 2)
}
