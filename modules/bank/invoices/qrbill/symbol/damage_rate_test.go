package symbol

import (
	"context"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/makiuchi-d/gozxing"
	"github.com/makiuchi-d/gozxing/qrcode/decoder"
	"github.com/makiuchi-d/gozxing/qrcode/encoder"
)

// billText returns a random payload of a common length.
func billText(r *rand.Rand) string {
	words := strings.Fields("Müller Zürich Genève Söhne Treuhand Rechnung Fattura Bahnhofstrasse Auftrag Grünenfelder Café Verein Gemeinde")
	pick := func(n int) string {
		var list []string
		for range n {
			list = append(list, words[r.IntN(len(words))])
		}
		return strings.Join(list, " ")
	}
	digits := func(n int) string {
		b := make([]byte, n)
		for i := range b {
			b[i] = byte('0' + r.IntN(10))
		}
		return string(b)
	}
	text := "SPC\n0200\n1\nCH" + digits(19) + "\nS\n" + pick(2) + "\n" + pick(1) + "\n" + digits(2) + "\n8001\nZürich\nCH\n\n\n\n\n\n\n\n" +
		digits(3) + ".50\nCHF\nS\n" + pick(2) + "\n" + pick(1) + "\n7\n3000\nBern\nCH\nQRR\n" + digits(27) + "\n" + pick(1+r.IntN(6)) + "\nEPD"
	if r.IntN(3) == 0 {
		text += "\n//S1/10/" + digits(8) + "/11/200712/20/" + digits(8) + "/30/106017086/32/8.1/40/0:30"
	}
	return text
}

// drawBill draws a bill with a code of the given size in pixels: the code with its Swiss cross, and lines in place of text.
func drawBill(t testing.TB, r *rand.Rand, text string, w, h, left, top int, size float64) *Gray {
	t.Helper()
	hints := map[gozxing.EncodeHintType]any{gozxing.EncodeHintType_CHARACTER_SET: "UTF-8"}
	code, err := encoder.Encoder_encode(text, decoder.ErrorCorrectionLevel_M, hints)
	if err != nil {
		t.Fatal(err)
	}
	matrix := code.GetMatrix()
	n := matrix.GetWidth()
	g := NewGray(w, h)
	const fine = 4
	for y := range h {
		for x := range w {
			if x < left || y < top || float64(x) > float64(left)+size || float64(y) > float64(top)+size {
				g.Pix[y*w+x] = 255
				continue
			}
			sum := 0
			for k := range fine * fine {
				fx := (float64(x-left) + (float64(k%fine)+0.5)/fine) / size
				fy := (float64(y-top) + (float64(k/fine)+0.5)/fine) / size
				if !darkAt(matrix.Get, n, fx, fy) {
					sum += 255
				}
			}
			g.Pix[y*w+x] = byte(sum / (fine * fine))
		}
	}
	for line := 0; line < 14; line++ {
		y0, x := top+line*int(size/14), left+int(size*1.12)
		for x < w-20 && r.IntN(12) > 0 {
			for y := y0; y < min(y0+9, h); y++ {
				for dx := range 2 + r.IntN(2) {
					if r.IntN(4) > 0 && x+dx < w {
						g.Pix[y*w+x+dx] = 20
					}
				}
			}
			x += 5 + r.IntN(4)
		}
	}
	return g
}

func darkAt(get func(x, y int) int8, n int, fx, fy float64) bool {
	if fx < 0 || fy < 0 || fx >= 1 || fy >= 1 {
		return false
	}
	const cross = 7.0 / 46 // width of the cross relative to the code
	if cx, cy := math.Abs(fx-0.5), math.Abs(fy-0.5); cx < cross/2 && cy < cross/2 {
		if cx > cross/2*0.92 || cy > cross/2*0.92 {
			return false
		}
		bar := func(a, b float64) bool { return a < cross*0.29 && b < cross*0.09 }
		return !bar(cx, cy) && !bar(cy, cx)
	}
	return get(int(fx*float64(n)), int(fy*float64(n))) == 1
}

// damaged returns a damaged bill and the text of its code.
func damaged(t testing.TB, kind string, seed uint64, severity float64) (*Gray, string) {
	t.Helper()
	r := rand.New(rand.NewPCG(seed, 7))
	text := billText(r)
	const w, h, left, top, size = 560, 520, 64.0, 96.0, 362.0
	g := drawBill(t, r, text, w, h, left, top, size)
	g = damages[kind](g, r, [4]float64{left, top, size, size}, severity)
	for i, p := range g.Pix {
		g.Pix[i] = byte(max(0, min(255, float64(p)+r.NormFloat64()*3)))
	}
	return throughJPEG(g, 75), text
}

// readAll makes all passes over a picture.
func readAll(g *Gray, want string) (right, wrong, quick bool) {
	s := NewScan(g)
	s.Stop = func(c Code) bool { return strings.HasPrefix(c.Text, "SPC\n") }
	quick = s.Quick(context.Background())
	if len(s.Codes) == 0 {
		s.Thorough(context.Background())
	}
	for _, c := range s.Codes {
		right = right || c.Text == want
		wrong = wrong || c.Text != want
	}
	return right, wrong, quick
}

// TestDamages measures how many damaged codes are read, and checks that none is misread. KONTOR_QR_SEEDS sets the number of
// samples.
func TestDamages(t *testing.T) {
	seeds, severities := 1, []float64{0.6}
	if n, err := strconv.Atoi(os.Getenv("KONTOR_QR_SEEDS")); err == nil {
		seeds, severities = n, []float64{0, 0.5, 1}
	}
	var report strings.Builder
	total, read := 0, 0
	for _, kind := range slices.Sorted(maps.Keys(damages)) {
		fmt.Fprintf(&report, "\n%-12s", kind)
		for _, severity := range severities {
			right, quick := 0, 0
			for seed := range seeds {
				g, want := damaged(t, kind, uint64(seed), severity)
				ok, wrong, early := readAll(g, want)
				if wrong {
					t.Errorf("%s %d %.1f: misread", kind, seed, severity)
				}
				if ok {
					right++
				}
				if ok && early {
					quick++
				}
			}
			total, read = total+seeds, read+right
			fmt.Fprintf(&report, "  %3d%% (quick %3d%%)", 100*right/seeds, 100*quick/seeds)
		}
	}
	t.Logf("read at severities %v:%s", severities, report.String())
	if least := 90; 100*read < least*total {
		t.Errorf("read %d of %d damaged codes, expected %d %%", read, total, least)
	}
}
