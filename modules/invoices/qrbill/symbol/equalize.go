package symbol

// taps is the reach of the filter in half modules: five by five values.
const taps = 2

// equalize undoes blur, motion and small displacements: it looks for the linear
// filter over the neighbourhood that best turns what was seen into what is
// known to be there, and applies it to all modules. hints are the values taken
// as known: those of the patterns, or guesses.
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
			s.neighbours(r, c, row)
			system.add(row, float64(hint)-row[side*side/2], 1)
			count++
		}
	}
	if count < 100 {
		return nil, false
	}
	// Without evidence the filter stays what it would be for a clear picture: the
	// middle value alone.
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
			s.neighbours(r, c, row)
			var v float64
			for i, x := range row {
				v += filter[i] * x
			}
			out[r*n+c] = float32(max(-1.6, min(1.6, v)))
		}
	}
	return out, true
}

// neighbours collects the values around the centre of a module, and a constant.
func (s *samples) neighbours(r, c int, to []float64) {
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

// decided turns values into hints where they are clear, and keeps what is known.
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
