package symbol

import (
	"cmp"
	"math"
	"slices"
	"sort"
)

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
