// Package exif reads the orientation of a photo from its EXIF data, and turns the photo upright.
package exif

import (
	"bytes"
	"encoding/binary"
	"image"

	"github.com/disintegration/imaging"
)

// Orientation is the orientation in which a camera has stored a picture (CIPA DC-008, table 3): 1 for upright, 3 for upside down, 6
// and 8 for a quarter turn, and 2, 4, 5 and 7 for the mirrored ones. Other values count as upright.
type Orientation int

// Upright is the orientation of a picture that is stored as it is to be seen.
const Upright Orientation = 1

// TagOrientation is the number of the field that holds the orientation.
const TagOrientation = 0x0112

// IsQuarterTurn reports whether width and height of the stored picture are those of the upright one in reverse.
func (o Orientation) IsQuarterTurn() bool { return o >= 5 && o <= 8 }

// Turn returns a stored picture upright.
func (o Orientation) Turn(img *image.NRGBA) *image.NRGBA {
	switch o {
	case 2:
		return imaging.FlipH(img)
	case 3:
		return imaging.Rotate180(img)
	case 4:
		return imaging.FlipV(img)
	case 5:
		return imaging.Transpose(img)
	case 6:
		return imaging.Rotate270(img) // counter-clockwise
	case 7:
		return imaging.Transverse(img)
	case 8:
		return imaging.Rotate90(img)
	}
	return img
}

// OrientationOf returns the orientation in EXIF data, which have the form of a TIFF file (TIFF 6.0, section 2). It returns Upright
// for damaged data.
func OrientationOf(data []byte) Orientation {
	const (
		header, entry = 8, 12
		short         = 3
		last          = 8
	)
	var order binary.ByteOrder
	switch {
	case len(data) < header:
		return Upright
	case bytes.HasPrefix(data, []byte("II*\x00")):
		order = binary.LittleEndian
	case bytes.HasPrefix(data, []byte("MM\x00*")):
		order = binary.BigEndian
	default:
		return Upright
	}
	offset := uint64(order.Uint32(data[4:]))
	if offset+2 > uint64(len(data)) {
		return Upright
	}
	entries := int(order.Uint16(data[offset:]))
	for rest := data[offset+2:]; entries > 0 && len(rest) >= entry; entries-- {
		if order.Uint16(rest) == TagOrientation && order.Uint16(rest[2:]) == short {
			if o := Orientation(order.Uint16(rest[8:])); o >= Upright && o <= last {
				return o
			}
			return Upright
		}
		rest = rest[entry:]
	}
	return Upright
}
