package qrbill

// orientation is the orientation of a camera (EXIF, tag 274): 1 or 0 for upright, 3 for upside down, 6 and 8 for a quarter
// turn, and 2, 4, 5 and 7 for the mirrored ones. Codes are read in any orientation; it only determines the order of several
// bills.
type orientation uint32

const tagOrientation = 274

// position returns the vertical position of a point in the oriented picture. Only comparisons within one picture are
// meaningful.
func (o orientation) position(x, y float64) float64 {
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

// orientationOf reads the orientation from EXIF data, which are a TIFF file without a picture.
func orientationOf(exif []byte) orientation {
	t, err := openTIFF(exif, Limits{Pages: 1})
	if err != nil {
		return 0
	}
	return t.orientation(t.directories[0])
}

// orientation returns the orientation of a page.
func (t *tiffFile) orientation(directory uint32) orientation {
	return orientation(t.first(directory, tagOrientation, 0))
}
