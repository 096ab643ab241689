package symbol

import (
	"cmp"
	"math"
	"sort"
)

// triple is three finder patterns that may belong to one symbol. In the picture, right is clockwise of down.
type triple struct {
	corner, right, down finder
	badness             float64
}

// size estimates the number of modules between the centres of the patterns.
func (t triple) size() float64 {
	a := distance(t.corner.point, t.right.point) / ((t.corner.module + t.right.module) / 2)
	b := distance(t.corner.point, t.down.point) / ((t.corner.module + t.down.module) / 2)
	return (a + b) / 2
}

// triples returns the plausible combinations of finder patterns, the best first.
func triples(found []finder, limit int) []triple {
	var list []triple
	for i, corner := range found {
		for j, a := range found {
			for k := j + 1; k < len(found); k++ {
				if j == i || k == i {
					continue
				}
				if t, ok := newTriple(corner, a, found[k]); ok {
					list = append(list, t)
				}
			}
		}
	}
	sort.SliceStable(list, func(i, j int) bool { return cmp.Less(list[i].badness, list[j].badness) })
	if len(list) > limit {
		list = list[:limit]
	}
	return list
}

// newTriple rates three patterns, of which the first is at the right angle. ok is false for an implausible combination.
func newTriple(corner, a, b finder) (t triple, ok bool) {
	va, vb := a.minus(corner.point), b.minus(corner.point)
	la, lb := va.length(), vb.length()
	if la == 0 || lb == 0 {
		return triple{}, false
	}
	small := min(corner.module, a.module, b.module)
	large := max(corner.module, a.module, b.module)
	cosine := math.Abs(va.dot(vb)) / (la * lb)
	if large > 2*small || cosine > 0.55 || la > 1.9*lb || lb > 1.9*la {
		return triple{}, false
	}
	t = triple{corner: corner, right: a, down: b}
	if va.cross(vb) < 0 {
		t.right, t.down = b, a
	}
	na := la / ((corner.module + a.module) / 2)
	nb := lb / ((corner.module + b.module) / 2)
	if min(na, nb) < 10 || max(na, nb) > 200 || na > 1.6*nb || nb > 1.6*na {
		return triple{}, false
	}
	t.badness = cosine + math.Abs(math.Log(la/lb)) + math.Log(large/small) + 0.5*math.Abs(math.Log(na/nb)) +
		0.4/float64(corner.count+1) + 0.4/float64(a.count+1) + 0.4/float64(b.count+1)
	return t, true
}
