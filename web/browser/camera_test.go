package browser_test

import (
	"bytes"
	"fmt"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"os"
	"strings"
	"testing"
)

// billBeforeCamera is the picture that the tests' camera shows.
const billBeforeCamera = "../../testdata/qr/files/qr-only-b27-05.png"

// writeFilm writes an uncompressed video of one frame, which the browser uses instead of a camera: a bill on a table.
func writeFilm(path string) error {
	const width, height, scale = 1280, 720, 2
	raw, err := os.ReadFile(billBeforeCamera)
	if err != nil {
		return err
	}
	code, err := png.Decode(bytes.NewReader(raw))
	if err != nil {
		return err
	}
	size := code.Bounds().Size()
	bill := image.NewGray(image.Rect(0, 0, size.X, size.Y))
	draw.Draw(bill, bill.Bounds(), image.White, image.Point{}, draw.Src)
	draw.Draw(bill, bill.Bounds(), code, code.Bounds().Min, draw.Over)
	table := image.NewGray(image.Rect(0, 0, width, height))
	draw.Draw(table, table.Bounds(), image.NewUniform(color.Gray{Y: 190}), image.Point{}, draw.Src)
	left, top := (width-scale*size.X)/2, (height-scale*size.Y)/2
	for y := range scale * size.Y {
		for x := range scale * size.X {
			table.SetGray(left+x, top+y, bill.GrayAt(x/scale, y/scale))
		}
	}
	var film bytes.Buffer
	fmt.Fprintf(&film, "YUV4MPEG2 W%d H%d F10:1 Ip A1:1 C420jpeg\nFRAME\n", width, height)
	film.Write(table.Pix)
	film.Write(bytes.Repeat([]byte{128}, width*height/2)) // no colour
	return os.WriteFile(path, film.Bytes(), 0o600)
}

func TestCamera_ReadsABill(t *testing.T) {
	s := sharedServer(t)
	v := signedInAt(t, s, desk, s.newPerson("Advisor"), "/invoices")
	v.clickText("Use the camera")
	v.until(`document.querySelector('.camera video').videoWidth === 1280`)
	v.clickText("Take picture")
	v.until(`document.querySelector('.paper')?.innerText.includes('CH47 0023 0744 5337 5849 A')`)
	v.until(`/2.382\.24/.test(document.querySelector('.paper').innerText)`)
	v.gone(`.camera`) // The camera is switched off.
}

func TestCamera_ExplainsDeniedAccess(t *testing.T) {
	s := sharedServer(t)
	v := signedInAt(t, s, desk, s.newPerson("Advisor"), "/invoices")
	v.eval(`navigator.mediaDevices.getUserMedia = () => Promise.reject(new DOMException('no', 'NotAllowedError'))`)
	v.clickText("Use the camera")
	v.see("Access to the camera is blocked.")
	v.clickText("Cancel")
	v.until(`document.querySelector('.drop')`)
}

// Only the console's own pages may use the camera: no frame and no other document of the server.
func TestCamera_IsAllowedForTheConsoleOnly(t *testing.T) {
	s := sharedServer(t)
	for path, want := range map[string]string{"/invoices": "camera=(self)", "/": "camera=(self)", "/docs": "camera=()"} {
		answer, err := apiClient.Get(s.url(path))
		if err != nil {
			t.Fatal(err)
		}
		answer.Body.Close()
		if got := answer.Header.Get("Permissions-Policy"); !strings.Contains(got, want) {
			t.Errorf("%s: Permissions-Policy is %q, want %s in it", path, got, want)
		}
	}
}
