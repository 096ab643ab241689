package main

import (
	"bytes"
	"image"
	"image/color"
	"image/png"
	"testing"
)

func TestShrink_KeepsTheSizeAndTheFrequentColours(t *testing.T) {
	picture := image.NewRGBA(image.Rect(0, 0, 64, 64))
	accent := color.RGBA{R: 13, G: 92, B: 99, A: 255}
	for y := range 64 {
		for x := range 64 {
			picture.Set(x, y, accent)
			if y < 10 { // 640 colours that occur once
				picture.Set(x, y, color.RGBA{R: uint8(4 * x), G: uint8(20 * y), B: 200, A: 255})
			}
		}
	}
	var before bytes.Buffer
	if err := png.Encode(&before, picture); err != nil {
		t.Fatal(err)
	}
	after, err := shrink(before.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	got, err := png.Decode(bytes.NewReader(after))
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := got.(*image.Paletted); !ok || got.Bounds() != picture.Bounds() {
		t.Errorf("got a %T of %v", got, got.Bounds())
	}
	if r, g, b, _ := got.At(20, 40).RGBA(); r>>8 != 13 || g>>8 != 92 || b>>8 != 99 {
		t.Errorf("the most frequent colour became %d %d %d", r>>8, g>>8, b>>8)
	}
	if r, _, b, _ := got.At(60, 5).RGBA(); r>>8 < 180 || b>>8 < 150 {
		t.Errorf("a rare colour was replaced: %d, %d", r>>8, b>>8)
	}
}

func TestShrink_RejectsInvalidData(t *testing.T) {
	if _, err := shrink([]byte("no picture")); err == nil {
		t.Error("want an error")
	}
}
