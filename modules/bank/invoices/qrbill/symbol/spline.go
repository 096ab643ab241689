package symbol

import "math"

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
