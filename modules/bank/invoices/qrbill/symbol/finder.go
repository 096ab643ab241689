package symbol

import (
	"cmp"
	"math"
	"slices"
	"sort"
)

type point struct{ x, y float64 }

func (p point) minus(q point) point       { return point{p.x - q.x, p.y - q.y} }
func (p point) plus(q point) point        { return point{p.x + q.x, p.y + q.y} }
func (p point) times(f float64) point     { return point{p.x * f, p.y * f} }
func (p point) length() float64           { return math.Hypot(p.x, p.y) }
func (p point) cross(q point) float64     { return p.x*q.y - p.y*q.x }
func (p point) dot(q point) float64       { return p.x*q.x + p.y*q.y }
func between(p, q point, f float64) point { return p.plus(q.minus(p).times(f)) }
func distance(p, q point) float64         { return p.minus(q).length() }
func middle(p, q point) point             { return between(p, q, 0.5) }

// finder is a candidate for a finder pattern.
type finder struct {
	point
	module float64 // size of a module in pixels
	count  int     // number of rows in which it was found
}

// maxFinders limits the candidates of a picture to those with the highest counts.
const maxFinders = 24

// findFinders searches the rows for runs dark-light-dark-light-dark in the proportions 1:1:3:1:1, and checks the column of
// each hit.
func findFinders(b *bitmap) []finder {
	var found []finder
	step := max(1, b.h/1500)
	for y := step / 2; y < b.h; y += step {
		row := b.bits[y*b.w : (y+1)*b.w]
		var runs [5]int
		previous := byte(0)
		for x := 0; x <= b.w; x++ {
			pixel := byte(0)
			if x < b.w {
				pixel = row[x]
			}
			if pixel == previous && x < b.w {
				runs[4]++
				continue
			}
			if previous == 1 && runs[4] > 0 && finderRuns(runs) {
				found = confirm(b, found, x, y, runs)
			}
			copy(runs[:], runs[1:])
			runs[4] = 1
			previous = pixel
		}
	}
	sort.SliceStable(found, func(i, j int) bool { return found[i].count > found[j].count })
	found = slices.DeleteFunc(found, func(f finder) bool { return f.count < 2 && f.module*3 > 2*float64(step) })
	if len(found) > maxFinders {
		found = found[:maxFinders]
	}
	return found
}

// minModule is the minimum size of a readable module in pixels.
const minModule = 1.2

// finderRuns reports whether five runs have the proportions of a finder pattern.
func finderRuns(runs [5]int) bool {
	total := 0
	for _, r := range runs {
		if r == 0 {
			return false
		}
		total += r
	}
	if float64(total) < 7*minModule {
		return false
	}
	module := float64(total) / 7
	slack := module*0.55 + 0.45
	for i, r := range runs {
		want := module
		limit := slack
		if i == 2 {
			want, limit = 3*module, 2.2*slack
		}
		if math.Abs(float64(r)-want) > limit {
			return false
		}
	}
	return true
}

// confirm checks a hit that ends at column end of row y, and merges it with the previous hits.
func confirm(b *bitmap, found []finder, end, y int, runs [5]int) []finder {
	width := runs[0] + runs[1] + runs[2] + runs[3] + runs[4]
	x := float64(end-runs[4]-runs[3]) - float64(runs[2])/2
	cy, height, ok := crossRuns(b, int(x), y, 0, 1, width)
	if !ok {
		return found
	}
	cx, again, ok := crossRuns(b, int(x), int(cy), 1, 0, width)
	if !ok {
		return found
	}
	module := (float64(height) + float64(again)) / 14
	center := point{cx, cy}
	for i := range found {
		f := &found[i]
		if math.Abs(f.x-cx) < f.module*1.5 && math.Abs(f.y-cy) < f.module*1.5 && module < f.module*1.7 && f.module < module*1.7 {
			n := float64(f.count)
			f.point = f.times(n).plus(center).times(1 / (n + 1))
			f.module = (f.module*n + module) / (n + 1)
			f.count++
			return found
		}
	}
	return append(found, finder{center, module, 1})
}

// crossRuns measures the five runs through a point along an axis. It returns the centre on that axis and the total length.
func crossRuns(b *bitmap, x, y, dx, dy, total int) (center float64, length int, ok bool) {
	if x < 0 || y < 0 || x >= b.w || y >= b.h || b.bits[y*b.w+x] == 0 {
		return 0, 0, false
	}
	var runs [5]int
	walk := func(sign, first int) int {
		px, py, n := x+sign*dx, y+sign*dy, 0
		want := byte(1)
		for state := first; state >= 0 && state <= 4; {
			if px < 0 || py < 0 || px >= b.w || py >= b.h {
				break
			}
			if b.bits[py*b.w+px] != want {
				state += sign
				want ^= 1
				continue
			}
			runs[state]++
			if runs[state] > 2*total {
				return n
			}
			if state == first {
				n++
			}
			px, py = px+sign*dx, py+sign*dy
		}
		return n
	}
	runs[2] = 1
	after := walk(1, 2)
	before := walk(-1, 2)
	for _, r := range runs {
		length += r
	}
	if !finderRuns(runs) || float64(length) < 7*minModule || length > 2*total || 2*length < total {
		return 0, 0, false
	}
	at := y
	if dx == 1 {
		at = x
	}
	return float64(at) + 0.5 + float64(after-before)/2, length, true
}

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

// pattern is a group of modules with known values, around a centre.
type pattern struct {
	u, v   float64 // centre, in modules
	offset []point
	sign   []float32
}

func ringPattern(u, v float64, reach, core, ring int) pattern {
	p := pattern{u: u, v: v}
	for r := -reach; r <= reach; r++ {
		for c := -reach; c <= reach; c++ {
			p.offset = append(p.offset, point{float64(c), float64(r)})
			p.sign = append(p.sign, -float32(ringValue(max(abs(r), abs(c)), core, ring)))
		}
	}
	return p
}

func finderPattern(u, v float64) pattern { return ringPattern(u, v, 4, 1, 3) }

// correlation returns the correlation of the picture at the given places with the expected values: 1 for perfect agreement,
// 0 for none.
func correlation(g *Gray, places []point, shift point, sign []float32) float64 {
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

// search searches for a pattern around the place where the mapping predicts it. It returns the place with the highest
// correlation.
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
			// Prefer the nearest of equal places.
			score := correlation(g, places, shift, p.sign) - 0.01*math.Hypot(a, b)
			if score > best {
				best, at = score, center.plus(shift)
			}
		}
	}
	return at, best
}
