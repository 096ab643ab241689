package symbol

import (
	"bytes"
	"image"
	"image/jpeg"
	"math"
	"math/rand/v2"
)

// damages are kinds of damage to a picture, each with a severity from 0 to 1.
var damages = map[string]func(g *Gray, r *rand.Rand, box [4]float64, severity float64) *Gray{
	"crease": func(g *Gray, r *rand.Rand, box [4]float64, s float64) *Gray {
		at := box[0] + box[2]*(0.2+0.6*r.Float64())
		slope := (r.Float64() - 0.5) * 0.2
		shift := 1 + 2*s
		return remap(g, func(x, y float64) (float64, float64, float64) {
			d := x - at - slope*y
			f := 1.0
			if math.Abs(d) < 3+5*s {
				f = 0.75 - 0.2*s
			}
			if d > 0 {
				x -= shift
			}
			return x, y, f
		})
	},
	"stain": func(g *Gray, r *rand.Rand, box [4]float64, s float64) *Gray {
		cx, cy, radius := box[0]+box[2]*r.Float64(), box[1]+box[3]*r.Float64(), box[2]*(0.25+0.25*s)
		return remap(g, func(x, y float64) (float64, float64, float64) {
			if math.Hypot(x-cx, y-cy) < radius {
				return x, y, 0.55 - 0.15*s
			}
			return x, y, 1
		})
	},
	"pen": func(g *Gray, r *rand.Rand, box [4]float64, s float64) *Gray {
		ink, width := 40.0, 2.0+r.Float64()
		x, y := box[0]-10, box[1]+box[3]*r.Float64()
		for range int(10 + 24*s) {
			nx, ny := x+r.Float64()*box[2]*0.16-2, box[1]+box[3]*(0.1+0.8*r.Float64())
			if nx > box[0]+box[2] {
				nx = box[0]
			}
			stroke(g, x, y, nx, ny, width, ink)
			x, y = nx, ny
		}
		return g
	},
	"ballpoint": func(g *Gray, r *rand.Rand, box [4]float64, s float64) *Gray {
		// Unlike "pen", it also covers dark modules.
		cover := NewGray(g.W, g.H)
		for i := range cover.Pix {
			cover.Pix[i] = 255
		}
		x, y := box[0]-10, box[1]+box[3]*r.Float64()
		for range int(6 + 12*s) {
			nx, ny := x+r.Float64()*box[2]*0.2-2, box[1]+box[3]*(0.1+0.8*r.Float64())
			if nx > box[0]+box[2] {
				nx = box[0]
			}
			stroke(cover, x, y, nx, ny, 6, 0)
			x, y = nx, ny
		}
		cover = cover.Blur()
		for i, c := range cover.Pix {
			g.Pix[i] = byte(40 + (float64(g.Pix[i])-40)*float64(c)/255)
		}
		return g
	},
	"stamp": func(g *Gray, r *rand.Rand, box [4]float64, s float64) *Gray {
		cx, cy, radius := box[0]+box[2]*(0.3+0.6*r.Float64()), box[1]+box[3]*(0.3+0.5*r.Float64()), box[2]*0.38
		for _, k := range []float64{1, 0.8} {
			for a := 0.0; a < 2*math.Pi; a += 0.02 {
				stroke(g, cx+k*radius*math.Cos(a), cy+k*radius*math.Sin(a), cx+k*radius*math.Cos(a+0.02), cy+k*radius*math.Sin(a+0.02), 3+2*s, 120-50*s)
			}
		}
		for i := range 8 {
			stroke(g, cx-radius*0.6+float64(i)*radius*0.17, cy-12, cx-radius*0.6+float64(i)*radius*0.17+8, cy+12, 5, 120-50*s)
		}
		return g
	},
	"curl": func(g *Gray, r *rand.Rand, box [4]float64, s float64) *Gray {
		bend, phase, skew := 8+14*s, r.Float64()*2, (r.Float64()-0.5)*0.2
		return remap(g, func(x, y float64) (float64, float64, float64) {
			k := math.Sin(x/box[2]*2 + phase)
			return x + 0.4*bend*math.Sin(x/box[2]*3), y + bend*k + skew*x - 30*skew, 0.92 + 0.05*k
		})
	},
	"motion": func(g *Gray, r *rand.Rand, box [4]float64, s float64) *Gray {
		length, angle := 4+6*s, r.Float64()*math.Pi
		return average(g, func(f float64) (float64, float64) {
			return (f - 0.5) * length * math.Cos(angle), (f - 0.5) * length * math.Sin(angle)
		}, 15)
	},
	"defocus": func(g *Gray, r *rand.Rand, box [4]float64, s float64) *Gray {
		radius := 2 + 2.2*s
		return average(g, func(f float64) (float64, float64) {
			a := f * 61 * 2.399963
			return radius * math.Sqrt(f) * math.Cos(a), radius * math.Sqrt(f) * math.Sin(a)
		}, 61)
	},
	"glare": func(g *Gray, r *rand.Rand, box [4]float64, s float64) *Gray {
		cx, cy, radius := box[0]+box[2]*(0.4+0.6*r.Float64()), box[1]+box[3]*(0.4+0.6*r.Float64()), box[2]*(0.16+0.14*s)
		out := NewGray(g.W, g.H)
		for i, p := range g.Pix {
			d := math.Hypot(float64(i%g.W)-cx, float64(i/g.W)-cy)
			light := 255 * min(1, math.Exp(-(d-radius*0.6)/radius*2.4))
			out.Pix[i] = byte(min(255, float64(p)*0.8+light))
		}
		return out
	},
	"dither": func(g *Gray, r *rand.Rand, box [4]float64, s float64) *Gray {
		noise := 60 + 60*s
		errors := make([]float64, len(g.Pix)+g.W+2)
		for i, p := range g.Pix {
			v := 30 + float64(p)*0.75 + (r.Float64()-0.5)*noise + errors[i]
			q := 0.0
			if v > 128 {
				q = 255
			}
			g.Pix[i] = byte(q)
			e := v - q
			errors[i+1] += e * 7 / 16
			errors[i+g.W-1] += e * 3 / 16
			errors[i+g.W] += e * 5 / 16
			errors[i+g.W+1] += e * 1 / 16
		}
		return g
	},
	"jpeg": func(g *Gray, r *rand.Rand, box [4]float64, s float64) *Gray {
		return throughJPEG(scaled(g, 0.75), int(14-10*s))
	},
	"perspective": func(g *Gray, r *rand.Rand, box [4]float64, s float64) *Gray {
		a, b := (r.Float64()*0.7+0.3)*(0.5+0.35*s), (r.Float64()-0.5)*0.4
		turn := (r.Float64() - 0.5) * 0.8
		cx, cy := box[0]+box[2]/2, box[1]+box[3]/2
		return remap(g, func(x, y float64) (float64, float64, float64) {
			x, y = (x-cx)/box[2], (y-cy)/box[3]
			x, y = x*math.Cos(turn)-y*math.Sin(turn), x*math.Sin(turn)+y*math.Cos(turn)
			w := 1 + a*x + b*y
			return cx + box[2]*1.5*x/w, cy + box[3]*1.2*(y+0.3*x)/w, 0.95
		})
	},
	"tiny": func(g *Gray, r *rand.Rand, box [4]float64, s float64) *Gray {
		return throughJPEG(scaled(g, 0.42-0.1*s), 70)
	},
	"noise": func(g *Gray, r *rand.Rand, box [4]float64, s float64) *Gray {
		for i, p := range g.Pix {
			g.Pix[i] = byte(max(0, min(255, 60+float64(p)*0.55+r.NormFloat64()*(25+45*s))))
		}
		return g
	},
}

func remap(g *Gray, from func(x, y float64) (float64, float64, float64)) *Gray {
	out := NewGray(g.W, g.H)
	for y := range g.H {
		for x := range g.W {
			fx, fy, f := from(float64(x)+0.5, float64(y)+0.5)
			v := 110.0
			if fx > 0 && fy > 0 && fx < float64(g.W) && fy < float64(g.H) {
				v = float64(g.at(fx, fy)) * f
			}
			out.Pix[y*g.W+x] = byte(v)
		}
	}
	return out
}

func average(g *Gray, offset func(f float64) (float64, float64), n int) *Gray {
	out := NewGray(g.W, g.H)
	for y := range g.H {
		for x := range g.W {
			var sum float32
			for k := range n {
				dx, dy := offset((float64(k) + 0.5) / float64(n))
				sum += g.at(float64(x)+0.5+dx, float64(y)+0.5+dy)
			}
			out.Pix[y*g.W+x] = byte(sum / float32(n))
		}
	}
	return out
}

func scaled(g *Gray, f float64) *Gray {
	out := NewGray(int(float64(g.W)*f), int(float64(g.H)*f))
	const fine = 3
	for y := range out.H {
		for x := range out.W {
			var sum float32
			for k := range fine * fine {
				sum += g.at((float64(x)+(float64(k%fine)+0.5)/fine)/f, (float64(y)+(float64(k/fine)+0.5)/fine)/f)
			}
			out.Pix[y*out.W+x] = byte(sum / fine / fine)
		}
	}
	return out
}

func stroke(g *Gray, x0, y0, x1, y1, width, ink float64) {
	n := int(math.Hypot(x1-x0, y1-y0)*2) + 1
	for i := range n + 1 {
		f := float64(i) / float64(n)
		cx, cy := x0+(x1-x0)*f, y0+(y1-y0)*f
		for y := int(cy - width); y <= int(cy+width); y++ {
			for x := int(cx - width); x <= int(cx+width); x++ {
				if x >= 0 && y >= 0 && x < g.W && y < g.H && math.Hypot(float64(x)+0.5-cx, float64(y)+0.5-cy) <= width/2+0.5 {
					g.Pix[y*g.W+x] = min(g.Pix[y*g.W+x], byte(ink))
				}
			}
		}
	}
}

func throughJPEG(g *Gray, quality int) *Gray {
	var b bytes.Buffer
	img := &image.Gray{Pix: g.Pix, Stride: g.W, Rect: image.Rect(0, 0, g.W, g.H)}
	if err := jpeg.Encode(&b, img, &jpeg.Options{Quality: max(quality, 1)}); err != nil {
		panic(err)
	}
	back, err := jpeg.Decode(&b)
	if err != nil {
		panic(err)
	}
	decoded, out := back.(*image.Gray), NewGray(g.W, g.H)
	for y := range g.H {
		copy(out.Pix[y*g.W:(y+1)*g.W], decoded.Pix[y*decoded.Stride:])
	}
	return out
}
