package symbol

// taps is the radius of the filter in half modules: five by five values.
const taps = 2

// equalize reduces blur, motion and small displacements. It computes the linear filter that best maps the samples around
// each known module to its known value (least squares), and applies it to all modules. hints are the known values: those of
// the patterns, or guesses.
func (s *samples) equalize(hints []int8) ([]float32, bool) {
	const side = 2*taps + 1
	const unknowns = side*side + 1
	system := newSystem(unknowns)
	n := s.dimension
	row := make([]float64, unknowns)
	count := 0
	for r := range n {
		for c := range n {
			hint := hints[r*n+c]
			if hint == 0 {
				continue
			}
			s.adjacent(r, c, row)
			system.add(row, float64(hint)-row[side*side/2], 1)
			count++
		}
	}
	if count < 100 {
		return nil, false
	}
	// Regularisation: without evidence, the filter is the identity.
	for i := range unknowns {
		system.a[i*(unknowns+1)+i] += 0.02 * float64(count)
	}
	filter, ok := system.solve()
	if !ok {
		return nil, false
	}
	filter[side*side/2]++
	out := make([]float32, n*n)
	for r := range n {
		for c := range n {
			s.adjacent(r, c, row)
			var v float64
			for i, x := range row {
				v += filter[i] * x
			}
			out[r*n+c] = float32(max(-1.6, min(1.6, v)))
		}
	}
	return out, true
}

// adjacent writes the values around the centre of a module, and a constant, to a row of equations.
func (s *samples) adjacent(r, c int, to []float64) {
	i := 0
	for dy := -taps; dy <= taps; dy++ {
		y := min(max(2*r+1+dy, 0), s.side-1)
		for dx := -taps; dx <= taps; dx++ {
			x := min(max(2*c+1+dx, 0), s.side-1)
			to[i] = float64(s.value[y*s.side+x])
			i++
		}
	}
	to[i] = 1
}

// decided returns hints: the known values, and the values that are clear.
func (l *layout) decided(values []float32, clear float32) []int8 {
	hints := append([]int8(nil), l.known...)
	for i, v := range values {
		switch {
		case hints[i] != 0:
		case v > clear:
			hints[i] = dark
		case v < -clear:
			hints[i] = light
		}
	}
	return hints
}
