package symbol

import (
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
