package qrbill_test

import (
	"bytes"
	"image"
	"image/color"
	"image/jpeg"
	"image/png"
	"math"
	"math/rand/v2"
	"os"
	"testing"

	"kontor/modules/bank/invoices/qrbill"
	"kontor/store/testenv"
)

// stamped returns a bill under stamps whose rings look like finder patterns, with noise on it, enlarged by a factor.
func stamped(t *testing.T, stamps, noise, enlarged int) []byte {
	t.Helper()
	data, err := os.ReadFile("../../../../testdata/qr/files/hard-stamp-b27-0.jpg")
	if err != nil {
		t.Fatal(err)
	}
	bill, err := jpeg.Decode(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	b := bill.Bounds()
	out := image.NewGray(image.Rect(0, 0, b.Dx()*enlarged, b.Dy()*enlarged))
	for y := range out.Rect.Dy() {
		for x := range out.Rect.Dx() {
			out.Set(x, y, bill.At(b.Min.X+x/enlarged, b.Min.Y+y/enlarged))
		}
	}
	random := rand.New(rand.NewPCG(1, 2))
	stamp(out, float64(out.Rect.Dx())/2, float64(out.Rect.Dy())/2, float64(out.Rect.Dy())/3)
	for range stamps - 1 {
		stamp(out, random.Float64()*float64(out.Rect.Dx()), random.Float64()*float64(out.Rect.Dy()), 10+60*random.Float64())
	}
	for i, shade := range out.Pix {
		out.Pix[i] = uint8(max(0, min(255, int(shade)+random.IntN(2*noise+1)-noise)))
	}
	var file bytes.Buffer
	if err := png.Encode(&file, out); err != nil {
		t.Fatal(err)
	}
	return file.Bytes()
}

// stamp draws a dark ring around a dark disc.
func stamp(g *image.Gray, cx, cy, radius float64) {
	for y := max(0, int(cy-radius)); y < min(g.Rect.Dy(), int(cy+radius)); y++ {
		for x := max(0, int(cx-radius)); x < min(g.Rect.Dx(), int(cx+radius)); x++ {
			switch d := math.Hypot(float64(x)-cx, float64(y)-cy) / radius; {
			case d < 0.43, d > 0.71 && d < 1:
				g.SetGray(x, y, color.Gray{min(g.GrayAt(x, y).Y, 60)})
			case d < 0.71:
				g.SetGray(x, y, color.Gray{max(g.GrayAt(x, y).Y, 170)})
			}
		}
	}
}

// A bill that noise and stamps have made unreadable is answered as such, instead of taking all the time that a file may take and
// the slot of others with it.
func TestRead_ANoisyStampEndsBeforeTheTimeLimit(t *testing.T) {
	testenv.Need(t, testenv.Full)
	r := newReader(t, qrbill.Config{})
	_, err := r.Read(t.Context(), stamped(t, 40, 60, 2), qrbill.Options{})
	if qrbill.ReasonOf(err) != qrbill.NoQRCode {
		t.Errorf("got %v, want %s", err, qrbill.NoQRCode)
	}
}
