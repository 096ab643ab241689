// Package symbol finds and decodes QR codes in grey images, including damaged ones.
//
// The gozxing library reads clear codes. For other codes, the package uses the modules that every QR code has in common:
// the finder, timing and alignment patterns. It fits a perspective model to them, corrects for bent paper with the alignment
// patterns, reduces blur with a filter trained on the patterns, and passes the least certain codewords to the error
// correction as erasures. A result must satisfy the error correction with check symbols to spare, so that an uncertain code
// is not read rather than misread.
package symbol

import "github.com/makiuchi-d/gozxing"

// Gray is a picture in shades of grey, row by row without gaps; 0 is black.
type Gray struct {
	Pix  []byte
	W, H int
}

// NewGray returns a black picture.
func NewGray(w, h int) *Gray { return &Gray{Pix: make([]byte, w*h), W: w, H: h} }

// at interpolates between pixels, whose centres are at whole numbers plus one half. Points outside the picture have the
// value of its border.
func (g *Gray) at(x, y float64) float32 {
	x, y = x-0.5, y-0.5
	x, y = min(max(x, 0), float64(g.W-1)), min(max(y, 0), float64(g.H-1))
	x0, y0 := int(x), int(y)
	x1, y1 := min(x0+1, g.W-1), min(y0+1, g.H-1)
	fx, fy := float32(x-float64(x0)), float32(y-float64(y0))
	top, bottom := g.Pix[y0*g.W:], g.Pix[y1*g.W:]
	a := float32(top[x0]) + fx*(float32(top[x1])-float32(top[x0]))
	b := float32(bottom[x0]) + fx*(float32(bottom[x1])-float32(bottom[x0]))
	return a + fy*(b-a)
}

// inside reports whether a point is in the picture, or less than margin outside.
func (g *Gray) inside(p point, margin float64) bool {
	return p.x > -margin && p.y > -margin && p.x < float64(g.W)+margin && p.y < float64(g.H)+margin
}

// Half returns the picture at half its size, with the average of four pixels each.
func (g *Gray) Half() *Gray {
	out := NewGray(g.W/2, g.H/2)
	for y := range out.H {
		a, b := g.Pix[2*y*g.W:], g.Pix[(2*y+1)*g.W:]
		row := out.Pix[y*out.W : (y+1)*out.W]
		for x := range row {
			row[x] = byte((int(a[2*x]) + int(a[2*x+1]) + int(b[2*x]) + int(b[2*x+1]) + 2) / 4)
		}
	}
	return out
}

// Double returns the picture at twice its size, interpolated.
func (g *Gray) Double() *Gray {
	out := NewGray(g.W*2, g.H*2)
	for y := range out.H {
		for x := range out.W {
			out.Pix[y*out.W+x] = byte(g.at((float64(x)+0.5)/2, (float64(y)+0.5)/2) + 0.5)
		}
	}
	return out
}

// Blur returns the picture blurred with the kernel 1-2-1 in both directions.
func (g *Gray) Blur() *Gray {
	middle := make([]uint16, len(g.Pix))
	for y := range g.H {
		row := g.Pix[y*g.W : (y+1)*g.W]
		to := middle[y*g.W : (y+1)*g.W]
		for x := range row {
			to[x] = uint16(row[max(x-1, 0)]) + 2*uint16(row[x]) + uint16(row[min(x+1, g.W-1)])
		}
	}
	out := NewGray(g.W, g.H)
	for y := range g.H {
		a, b, c := middle[max(y-1, 0)*g.W:], middle[y*g.W:], middle[min(y+1, g.H-1)*g.W:]
		row := out.Pix[y*g.W : (y+1)*g.W]
		for x := range row {
			row[x] = byte((a[x] + 2*b[x] + c[x] + 8) / 16)
		}
	}
	return out
}

// integral is a summed-area table.
type integral struct {
	sum    []uint32
	stride int
}

func newIntegral(g *Gray) integral {
	in := integral{make([]uint32, (g.W+1)*(g.H+1)), g.W + 1}
	for y := range g.H {
		var row uint32
		above, here := in.sum[y*in.stride:], in.sum[(y+1)*in.stride:]
		for x, p := range g.Pix[y*g.W : (y+1)*g.W] {
			row += uint32(p)
			here[x+1] = above[x+1] + row
		}
	}
	return in
}

// box returns the sum over columns x0 to x1-1 and rows y0 to y1-1. The sums in the table may overflow; the result is correct
// if it fits.
func (in integral) box(x0, y0, x1, y1 int) uint32 {
	return in.sum[y1*in.stride+x1] - in.sum[y0*in.stride+x1] - in.sum[y1*in.stride+x0] + in.sum[y0*in.stride+x0]
}

// Flatten divides each pixel by the mean brightness around it, to reduce shadows, stains and glare.
func (g *Gray) Flatten(radius int) *Gray {
	in, out := newIntegral(g), NewGray(g.W, g.H)
	for y := range g.H {
		y0, y1 := max(y-radius, 0), min(y+radius+1, g.H)
		for x := range g.W {
			x0, x1 := max(x-radius, 0), min(x+radius+1, g.W)
			mean := in.box(x0, y0, x1, y1)/uint32((x1-x0)*(y1-y0)) + 1
			out.Pix[y*g.W+x] = byte(min(uint32(g.Pix[y*g.W+x])*140/mean, 255))
		}
	}
	return out
}

// Sharpen adds the difference to a blur of the given radius (unsharp masking).
func (g *Gray) Sharpen(radius int, amount float32) *Gray {
	in, out := newIntegral(g), NewGray(g.W, g.H)
	for y := range g.H {
		y0, y1 := max(y-radius, 0), min(y+radius+1, g.H)
		for x := range g.W {
			x0, x1 := max(x-radius, 0), min(x+radius+1, g.W)
			mean := float32(in.box(x0, y0, x1, y1)) / float32((x1-x0)*(y1-y0))
			v := float32(g.Pix[y*g.W+x])
			out.Pix[y*g.W+x] = byte(min(max(v+amount*(v-mean), 0), 255))
		}
	}
	return out
}

// Stretch maps the shades between low and high to the full range.
func (g *Gray) Stretch(low, high int) *Gray {
	var curve [256]byte
	for i := range curve {
		curve[i] = byte(min(max((i-low)*255/max(high-low, 1), 0), 255))
	}
	out := NewGray(g.W, g.H)
	for i, p := range g.Pix {
		out.Pix[i] = curve[p]
	}
	return out
}

// shade returns the quantile of the shades: the shade below which the given share of the pixels is.
func (g *Gray) shade(share float64) int {
	var count [256]int
	for _, p := range g.Pix {
		count[p]++
	}
	rest := int(share * float64(len(g.Pix)))
	for i, n := range count {
		if rest -= n; rest < 0 {
			return i
		}
	}
	return 255
}

// ink searches for a frequent shade between print and paper, which may be that of a pen or a stamp. It returns the shade of
// the print and that of the ink. ok is false when there is no such shade.
func (g *Gray) ink() (dark, ink int, ok bool) {
	var count [256]int
	for _, p := range g.Pix {
		count[p]++
	}
	smooth := func(i int) int {
		sum := 0
		for k := max(i-4, 0); k <= min(i+4, 255); k++ {
			sum += count[k]
		}
		return sum
	}
	dark = g.shade(0.02)
	valley := smooth(dark)
	for i := dark + 1; i < min(dark+150, 230); i++ {
		here := smooth(i)
		valley = min(valley, here)
		// A peak in the histogram: higher than its surroundings, and of some weight.
		if here*2 > valley*3 && here > len(g.Pix)/400 && here >= smooth(i-1) && here > smooth(min(i+12, 255))*5/4 && here > smooth(i+1) {
			return dark, i, true
		}
	}
	return dark, 0, false
}

// bitmap is a black and white picture; 1 is dark.
type bitmap struct {
	bits []byte
	w, h int
}

// Luminance adapts a picture for the binarizers of gozxing without a copy: the brightness of a picture in YUV is one of its planes.
func Luminance(g *Gray) gozxing.LuminanceSource {
	source, _ := gozxing.NewPlanarYUVLuminanceSource(g.Pix, g.W, g.H, 0, 0, g.W, g.H, false) // fails only for a part beyond the picture
	return source
}

// hybrid converts a picture to black and white with the local thresholds of gozxing.
func hybrid(g *Gray) (*gozxing.BitMatrix, error) {
	return gozxing.NewHybridBinarizer(Luminance(g)).GetBlackMatrix()
}

// histogram converts a picture to black and white with one threshold for the whole picture.
func histogram(g *Gray) (*gozxing.BitMatrix, error) {
	return gozxing.NewGlobalHistgramBinarizer(Luminance(g)).GetBlackMatrix()
}

// toBitmap converts a matrix of gozxing.
func toBitmap(m *gozxing.BitMatrix) *bitmap {
	b := &bitmap{w: m.GetWidth(), h: m.GetHeight()}
	b.bits = make([]byte, b.w*b.h)
	for y := range b.h {
		row := b.bits[y*b.w : (y+1)*b.w]
		for x := range row {
			if m.Get(x, y) {
				row[x] = 1
			}
		}
	}
	return b
}

// invert exchanges dark and light in place.
func (b *bitmap) invert() {
	for i := range b.bits {
		b.bits[i] ^= 1
	}
}

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
