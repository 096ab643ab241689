package qrbill

// orientation is how a camera was held, as its files tell it (EXIF, tag 274):
// 1 or nothing for upright, 3 for upside down, 6 and 8 for lying on a side, and
// 2, 4, 5 and 7 for the same in a mirror. Codes are read however they lie; only
// the order of several bills depends on what is above.
type orientation uint32

const tagOrientation = 274

// down tells how far down a point lies when the picture is shown as the camera
// meant it. Only the order of the numbers of one picture has a meaning.
func (o orientation) down(x, y float64) float64 {
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

// orientationOf reads it from EXIF data, which are a TIFF without a picture.
func orientationOf(exif []byte) orientation {
	t, err := openTIFF(exif, Limits{Pages: 1})
	if err != nil {
		return 0
	}
	return t.orientation(t.directories[0])
}

// orientation is that of one page.
func (t *tiffFile) orientation(directory uint32) orientation {
	return orientation(t.first(directory, tagOrientation, 0))
}
