package factors

import (
	"fmt"
	"strings"

	"github.com/makiuchi-d/gozxing"
	"github.com/makiuchi-d/gozxing/qrcode/decoder"
	"github.com/makiuchi-d/gozxing/qrcode/encoder"
)

// quietZone is the white border of a QR code in modules (ISO/IEC 18004).
const quietZone = 4

// qrSVG draws a text as a QR code. The picture has a white background, so that it can also be read on a dark page.
func qrSVG(text string) (string, error) {
	hints := map[gozxing.EncodeHintType]any{gozxing.EncodeHintType_CHARACTER_SET: "UTF-8"}
	code, err := encoder.Encoder_encode(text, decoder.ErrorCorrectionLevel_M, hints)
	if err != nil {
		return "", fmt.Errorf("draw a QR code: %w", err)
	}
	m := code.GetMatrix()
	size := m.GetWidth() + 2*quietZone
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" shape-rendering="crispEdges">`, size, size)
	fmt.Fprintf(&b, `<path fill="#fff" d="M0 0h%dv%dH0z"/><path d="`, size, size)
	for y := range m.GetHeight() {
		for x := 0; x < m.GetWidth(); x++ {
			start := x
			for x < m.GetWidth() && m.Get(x, y) == 1 {
				x++
			}
			if run := x - start; run > 0 {
				fmt.Fprintf(&b, "M%d %dh%dv1h-%dz", start+quietZone, y+quietZone, run, run)
			}
		}
	}
	b.WriteString(`"/></svg>`)
	return b.String(), nil
}
