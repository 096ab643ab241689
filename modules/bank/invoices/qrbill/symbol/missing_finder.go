package symbol

import (
	"cmp"
	"sort"
)

const (
	strongFinders           = 4    // number of the best patterns that are paired
	strongCount             = 5    // minimum number of rows in which a pattern was found
	maxCompleted            = 6    // maximum number of completed triples
	completedRadius         = 4    // search radius for the third pattern, in modules
	minCompletedCorrelation = 0.45 // minimum correlation of the third pattern
)

// completeTriples returns triples for pairs of finder patterns whose third pattern was not found, for example because of a pen
// stroke. It searches for the third pattern at all possible places.
func completeTriples(g *Gray, found []finder) []triple {
	type rated struct {
		triple
		correlation float64
	}
	var list []rated
	for i, a := range found[:min(len(found), strongFinders)] {
		for _, b := range found[i+1 : min(len(found), strongFinders)] {
			if a.count < strongCount || b.count < strongCount || a.module > 1.4*b.module || b.module > 1.4*a.module {
				continue
			}
			for _, t := range predictions(a, b) {
				patterns, correlation := t.locate(g)
				if correlation < minCompletedCorrelation {
					continue
				}
				if t, ok := newTriple(patterns[0], patterns[1], patterns[2]); ok {
					list = append(list, rated{t, correlation})
				}
			}
		}
	}
	sort.SliceStable(list, func(i, j int) bool { return cmp.Less(list[j].correlation, list[i].correlation) })
	out := make([]triple, 0, maxCompleted)
	for _, r := range list[:min(len(list), maxCompleted)] {
		out = append(out, r.triple)
	}
	return out
}

// prediction is a triple with one predicted pattern. The first pattern is at the right angle.
type prediction struct {
	patterns  [3]finder
	predicted int
}

// predictions returns the places where the third pattern of a pair can be.
func predictions(a, b finder) []prediction {
	d := b.minus(a.point)
	across := point{-d.y, d.x}
	module := (a.module + b.module) / 2
	at := func(p point) finder { return finder{p, module, 1} }
	var list []prediction
	for _, side := range []float64{1, -1} {
		s := across.times(side)
		list = append(list,
			prediction{[3]finder{a, b, at(a.plus(s))}, 2},
			prediction{[3]finder{b, a, at(b.plus(s))}, 2},
			prediction{[3]finder{at(middle(a.point, b.point).plus(s.times(0.5))), a, b}, 0})
	}
	return list
}

// locate searches for the predicted pattern near its place.
func (t prediction) locate(g *Gray) ([3]finder, float64) {
	f := &t.patterns[t.predicted]
	right := t.patterns[1].minus(t.patterns[0].point)
	right = right.times(f.module / right.length())
	down := point{-right.y, right.x}
	to := func(u, v float64) point { return f.plus(right.times(u)).plus(down.times(v)) }
	if !g.inside(f.point, 0) {
		return t.patterns, 0
	}
	seen, correlation := search(g, to, finderPattern(0, 0), completedRadius, 0.5)
	f.point = seen
	return t.patterns, correlation
}
