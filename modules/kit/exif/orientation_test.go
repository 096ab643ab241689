package exif_test

import (
	"encoding/binary"
	"image"
	"image/color"
	"testing"

	"kontor/modules/kit/exif"
)

// data returns EXIF data with one field.
func data(order interface {
	binary.ByteOrder
	binary.AppendByteOrder
}, tag, kind, value uint16) []byte {
	b := []byte("MM\x00*")
	if order == binary.AppendByteOrder(binary.LittleEndian) {
		b = []byte("II*\x00")
	}
	b = order.AppendUint32(b, 8)
	b = order.AppendUint16(b, 1)
	b = order.AppendUint16(order.AppendUint16(b, tag), kind)
	b = order.AppendUint16(order.AppendUint32(b, 1), value)
	return append(b, 0, 0)
}

func TestOrientationOf(t *testing.T) {
	for value := uint16(1); value <= 8; value++ {
		for _, b := range [][]byte{data(binary.BigEndian, exif.TagOrientation, 3, value), data(binary.LittleEndian, exif.TagOrientation, 3, value)} {
			if got := exif.OrientationOf(b); got != exif.Orientation(value) {
				t.Errorf("OrientationOf(%x) = %d, want %d", b, got, value)
			}
		}
	}
	whole := data(binary.BigEndian, exif.TagOrientation, 3, 6)
	for what, damaged := range map[string][]byte{
		"nothing": nil, "the value 0": data(binary.BigEndian, exif.TagOrientation, 3, 0), "the value 9": data(binary.BigEndian, exif.TagOrientation, 3, 9),
		"another field": data(binary.BigEndian, 0x0110, 3, 6), "another type": data(binary.BigEndian, exif.TagOrientation, 4, 6),
		"another format": append([]byte("GIF8"), whole[4:]...), "cut": whole[:len(whole)-5],
		"a directory beyond the end": append([]byte("MM\x00*\xff\xff\xff\xff"), whole[8:]...),
	} {
		if got := exif.OrientationOf(damaged); got != exif.Upright {
			t.Errorf("%s: %d, want upright", what, got)
		}
	}
}

// A picture that is turned has its first pixel where the standard says: at the given corner of the upright picture.
func TestTurn(t *testing.T) {
	stored := image.NewNRGBA(image.Rect(0, 0, 3, 2))
	mark := color.NRGBA{R: 255, A: 255}
	stored.SetNRGBA(0, 0, mark)
	for o, want := range map[exif.Orientation]image.Point{0: {0, 0}, 1: {0, 0}, 2: {2, 0}, 3: {2, 1}, 4: {0, 1}, 5: {0, 0}, 6: {1, 0}, 7: {1, 2}, 8: {0, 2}, 9: {0, 0}} {
		upright := o.Turn(stored)
		if turned := upright.Bounds().Dx() == 2; turned != o.IsQuarterTurn() {
			t.Errorf("%d: width %d", o, upright.Bounds().Dx())
		}
		if upright.NRGBAAt(want.X, want.Y) != mark {
			t.Errorf("%d: the first pixel is not at %v", o, want)
		}
	}
}

func FuzzOrientationOf(f *testing.F) {
	f.Add(data(binary.BigEndian, exif.TagOrientation, 3, 6))
	f.Add(data(binary.LittleEndian, exif.TagOrientation, 3, 8))
	f.Fuzz(func(t *testing.T, b []byte) {
		if o := exif.OrientationOf(b); o < exif.Upright || o > 8 {
			t.Errorf("orientation %d", o)
		}
	})
}
