package qrbill

import "kontor/modules/kit/exif"

// height returns the vertical position of a point in a picture that was stored with an orientation. Only comparisons within one
// picture are meaningful. Codes are read in any orientation; it only determines the order of several bills.
func height(o exif.Orientation, x, y float64) float64 {
	switch o {
	case 3, 4:
		return -y
	case 5, 6:
		return x
	case 7, 8:
		return -x
	}
	return y
}

// orientation returns the orientation of a page.
func (t *tiffFile) orientation(directory uint32) exif.Orientation {
	return exif.Orientation(t.first(directory, exif.TagOrientation, 0))
}
