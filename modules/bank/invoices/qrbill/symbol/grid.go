package symbol

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
	for _, c := range l.alignmentsFromCorner() {
		seen, score := search(g, h.to, alignmentPattern(c[0], c[1]), reach, 0.5)
		if score < 0.6 {
			continue
		}
		matches = append(matches, match{c[0], c[1], seen, score})
		if better, ok := fitProjection(append(matches[:len(matches):len(matches)], virtual)); ok {
			h = better
		}
	}
	matches = dropOutliers(matches, h, virtual)
	if better, ok := fitProjection(append(matches[:len(matches):len(matches)], virtual)); ok {
		h = better
	}
	out := &grid{layout: l, warp: warp{projection: *h}}
	out.fitSpline(matches, 2)
	out.refine(g)
	return out, true
}

// alignmentsFromCorner returns the alignment patterns, those near the upper left first, because each one improves the
// prediction of the next.
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
	for _, c := range q.alignmentsFromCorner() {
		seen, score := search(g, q.to, alignmentPattern(c[0], c[1]), 1, 0.25)
		if score > 0.55 {
			knots = append(knots, match{c[0], c[1], seen, score})
		}
	}
	q.fitSpline(knots, 2)
}
