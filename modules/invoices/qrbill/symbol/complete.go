package symbol

import (
	"cmp"
	"slices"
)

const (
	strongFinders   = 4    // how many of the best confirmed patterns are paired
	strongCount     = 5    // rows that must have confirmed one
	completedMost   = 6    // triples that are made of pairs
	completedReach  = 4    // how far from its place the third is looked for, in modules
	completedLikely = 0.45 // how well it must agree there
)

// completed makes triples of pairs: where only two finder patterns were found, as
// under the stroke of a pen, the third is looked for at all places where it could be.
func completed(g *Gray, found []finder) []triple {
	type rated struct {
		triple
		like float64
	}
	var list []rated
	for i, a := range found[:min(len(found), strongFinders)] {
		for _, b := range found[i+1 : min(len(found), strongFinders)] {
			if a.count < strongCount || b.count < strongCount || a.module > 1.4*b.module || b.module > 1.4*a.module {
				continue
			}
			for _, t := range thirds(a, b) {
				third, like := t.settle(g)
				if like < completedLikely {
					continue
				}
				if made, ok := newTriple(third[0], third[1], third[2]); ok {
					list = append(list, rated{made, like})
				}
			}
		}
	}
	slices.SortStableFunc(list, func(a, b rated) int { return cmp.Compare(b.like, a.like) })
	out := make([]triple, 0, completedMost)
	for _, r := range list[:min(len(list), completedMost)] {
		out = append(out, r.triple)
	}
	return out
}

// third is a triple of which one pattern is only supposed. The first is at the right angle.
type third struct {
	patterns [3]finder
	supposed int
}

// thirds lists the places where the third pattern of a pair can be.
func thirds(a, b finder) []third {
	d := b.minus(a.point)
	across := point{-d.y, d.x}
	module := (a.module + b.module) / 2
	at := func(p point) finder { return finder{p, module, 1} }
	var list []third
	for _, side := range []float64{1, -1} {
		s := across.times(side)
		list = append(list,
			third{[3]finder{a, b, at(a.plus(s))}, 2},
			third{[3]finder{b, a, at(b.plus(s))}, 2},
			third{[3]finder{at(middle(a.point, b.point).plus(s.times(0.5))), a, b}, 0})
	}
	return list
}

// settle looks for the supposed pattern near its place.
func (t third) settle(g *Gray) ([3]finder, float64) {
	f := &t.patterns[t.supposed]
	right := t.patterns[1].minus(t.patterns[0].point)
	right = right.times(f.module / right.length())
	down := point{-right.y, right.x}
	to := func(u, v float64) point { return f.plus(right.times(u)).plus(down.times(v)) }
	if !g.inside(f.point, 0) {
		return t.patterns, 0
	}
	seen, like := search(g, to, finderPattern(0, 0), completedReach, 0.5)
	f.point = seen
	return t.patterns, like
}
