package qrbill

import (
	"image"
	"image/color"

	"kontor/modules/bank/invoices/qrbill/symbol"
)

// toGray converts an image to shades of grey, on white paper where it is transparent. It reads the frequent types of images
// directly, because image.Image.At is many times slower.
func toGray(img image.Image) *symbol.Gray {
	bounds := img.Bounds()
	out := symbol.NewGray(bounds.Dx(), bounds.Dy())
	for y := range out.H {
		row := out.Pix[y*out.W : (y+1)*out.W]
		switch m := img.(type) {
		case *image.Gray:
			copy(row, m.Pix[y*m.Stride:])
		case *image.YCbCr:
			copy(row, m.Y[y*m.YStride:])
		case *image.NYCbCrA:
			copy(row, m.Y[y*m.YStride:])
			for x := range row {
				row[x] = onWhite(uint32(row[x]), uint32(m.A[y*m.AStride+x]))
			}
		case *image.Paletted:
			grayPalette(row, m.Pix[y*m.Stride:], m.Palette)
		case *image.RGBA:
			pix := m.Pix[y*m.Stride:]
			for x := range row {
				p := pix[4*x : 4*x+4]
				row[x] = byte(min(luma(uint32(p[0]), uint32(p[1]), uint32(p[2]))+255-uint32(p[3]), 255))
			}
		case *image.NRGBA:
			pix := m.Pix[y*m.Stride:]
			for x := range row {
				p := pix[4*x : 4*x+4]
				row[x] = onWhite(luma(uint32(p[0]), uint32(p[1]), uint32(p[2])), uint32(p[3]))
			}
		default:
			for x := range row {
				row[x] = grayOf(img.At(bounds.Min.X+x, bounds.Min.Y+y))
			}
		}
	}
	return out
}

// luma returns the luminance of a colour.
func luma(r, g, b uint32) uint32 { return (77*r + 150*g + 29*b + 128) >> 8 }

func onWhite(gray, alpha uint32) byte { return byte((gray*alpha + 255*(255-alpha)) / 255) }

func grayOf(c color.Color) byte {
	r, g, b, a := c.RGBA() // multiplied by the transparency
	return byte(min(luma(r>>8, g>>8, b>>8)+255-a>>8, 255))
}

func grayPalette(row, indices []byte, palette color.Palette) {
	var shades [256]byte
	for i, c := range palette[:min(len(palette), 256)] {
		shades[i] = grayOf(c)
	}
	for x := range row {
		row[x] = shades[indices[x]]
	}
}
