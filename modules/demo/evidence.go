package demo

import (
	"bytes"
	"context"
	"fmt"
	"image"
	"image/color"
	"image/draw"
	"image/jpeg"
	"math"

	"golang.org/x/image/font"
	"golang.org/x/image/font/basicfont"
	"golang.org/x/image/math/fixed"
)

// evidenceOf adds invented pictures to the documents of every third customer.
func (b *builder) evidenceOf(ctx context.Context, c *customer, i int) error {
	if i%3 != 1 {
		return nil
	}
	var kyc struct {
		Documents []struct{ ID, Type, Number string }
	}
	if err := b.api.get(ctx, c.advisor, "/v1/customers/"+c.id+"/kyc", &kyc); err != nil {
		return err
	}
	for _, d := range kyc.Documents {
		name, content, err := specimen(d.Type, d.Number, c.identity.first+" "+c.identity.last, i)
		if err != nil {
			return err
		}
		if err := b.api.upload(ctx, c.advisor, "/v1/customers/"+c.id+"/kyc/documents/"+d.ID+"/files", name, content); err != nil {
			return err
		}
	}
	return nil
}

// specimen draws a document: a card with a silhouette as JPEG, or a letter as PDF.
func specimen(kind, number, holder string, i int) (name string, content []byte, err error) {
	if kind == "proof_of_address" {
		return "electricity-bill.pdf", letter(number, holder), nil
	}
	const width, height = 856, 540 // the proportions of a card
	hue := color.RGBA{uint8(90 + i*37%110), uint8(110 + i*53%90), uint8(120 + i*29%100), 255}
	img := image.NewRGBA(image.Rect(0, 0, width, height))
	draw.Draw(img, img.Bounds(), image.NewUniform(color.RGBA{238, 234, 224, 255}), image.Point{}, draw.Src)
	draw.Draw(img, image.Rect(0, 0, width, 90), image.NewUniform(hue), image.Point{}, draw.Src)
	draw.Draw(img, image.Rect(50, 140, 290, 450), image.NewUniform(color.RGBA{208, 208, 204, 255}), image.Point{}, draw.Src)
	silhouette(img, image.Rect(50, 140, 290, 450), hue)
	write(img, 50, 30, 4, "SPECIMEN", color.White)
	for line, text := range []string{holder, number, "Kontor demo", "not a document"} {
		write(img, 330, 150+70*line, 3, text, color.Black)
	}
	var out bytes.Buffer
	err = jpeg.Encode(&out, img, &jpeg.Options{Quality: 80})
	return kind + "-front.jpg", out.Bytes(), err
}

// silhouette draws a head and shoulders into a frame.
func silhouette(img *image.RGBA, frame image.Rectangle, c color.Color) {
	middle := float64(frame.Min.X+frame.Max.X) / 2
	head, shoulders := float64(frame.Min.Y)+115, float64(frame.Max.Y)
	for y := frame.Min.Y; y < frame.Max.Y; y++ {
		for x := frame.Min.X; x < frame.Max.X; x++ {
			dx := float64(x) - middle
			if math.Hypot(dx, float64(y)-head) < 65 || math.Hypot(dx*0.85, float64(y)-shoulders) < 110 {
				img.Set(x, y, c)
			}
		}
	}
}

// write draws a text with letters of 7 by 13 points, scaled.
func write(img *image.RGBA, x, y, scale int, text string, c color.Color) {
	face := basicfont.Face7x13
	small := image.NewAlpha(image.Rect(0, 0, 7*len(text)+7, 16))
	d := font.Drawer{Dst: small, Src: image.NewUniform(color.Alpha{255}), Face: face, Dot: fixed.P(0, 12)}
	d.DrawString(text)
	for sy := range small.Rect.Dy() {
		for sx := range small.Rect.Dx() {
			if small.AlphaAt(sx, sy).A > 0 {
				at := image.Rect(x+sx*scale, y+sy*scale, x+(sx+1)*scale, y+(sy+1)*scale)
				draw.Draw(img, at, image.NewUniform(c), image.Point{}, draw.Src)
			}
		}
	}
}

// letter returns a PDF with one page.
func letter(number, holder string) []byte {
	plain := func(r rune) rune {
		if r > '~' || r < ' ' || r == '(' || r == ')' || r == '\\' {
			return '?'
		}
		return r
	}
	text := "BT /F1 20 Tf 60 760 Td (Elektrizitaetswerk Musterberg - SPECIMEN) Tj /F1 12 Tf 0 -60 Td (" +
		string(bytes.Map(plain, []byte(holder))) + ") Tj 0 -30 Td (Bill " + number + ") Tj 0 -30 Td (This letter was invented for a demonstration.) Tj ET"
	objects := []string{
		"<< /Type /Catalog /Pages 2 0 R >>", "<< /Type /Pages /Kids [4 0 R] /Count 1 >>",
		"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
		"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Contents 5 0 R /Resources << /Font << /F1 3 0 R >> >> >>",
		fmt.Sprintf("<< /Length %d >>\nstream\n%s\nendstream", len(text), text),
	}
	var out bytes.Buffer
	out.WriteString("%PDF-1.4\n")
	offsets := make([]int, len(objects))
	for n, object := range objects {
		offsets[n] = out.Len()
		fmt.Fprintf(&out, "%d 0 obj\n%s\nendobj\n", n+1, object)
	}
	start := out.Len()
	fmt.Fprintf(&out, "xref\n0 %d\n0000000000 65535 f \n", len(objects)+1)
	for _, at := range offsets {
		fmt.Fprintf(&out, "%010d 00000 n \n", at)
	}
	fmt.Fprintf(&out, "trailer\n<< /Size %d /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF\n", len(objects)+1, start)
	return out.Bytes()
}
