package symbol

import "math"

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

func finderPattern(u, v float64) pattern    { return ringPattern(u, v, 4, 1, 3) }
func alignmentPattern(u, v float64) pattern { return ringPattern(u, v, 2, 0, 2) }

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
