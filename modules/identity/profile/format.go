package profile

import (
	"bytes"
	"encoding/binary"

	"kontor/modules/kit/exif"
)

// format is a format of pictures that uploads may have.
type format string

const (
	jpegFormat format = "jpeg"
	pngFormat  format = "png"
)

const (
	jpegStart = "\xff\xd8\xff"
	pngStart  = "\x89PNG\r\n\x1a\n"
)

// formatOf returns the format of a file by its first bytes, or an empty text for other files.
func formatOf(file []byte) format {
	switch {
	case bytes.HasPrefix(file, []byte(jpegStart)):
		return jpegFormat
	case bytes.HasPrefix(file, []byte(pngStart)):
		return pngFormat
	}
	return ""
}

// structure holds what a file says about its picture before it is decoded.
type structure struct {
	orientation exif.Orientation
	end         int // of the picture in the file
}

func (f format) structure(file []byte) structure {
	if f == pngFormat {
		return pngStructure(file)
	}
	return jpegStructure(file)
}

// The markers of JPEG (ITU-T T.81, table B.1).
const (
	markerTEM  = 0x01
	markerRST0 = 0xd0
	markerSOI  = 0xd8
	markerEOI  = 0xd9
	markerSOS  = 0xda
	markerAPP1 = 0xe1
)

const exifStart = "Exif\x00\x00"

// jpegStructure reads the markers of a JPEG. If they are damaged, the picture extends to the end of the file: the decoder
// rejects it later.
func jpegStructure(file []byte) structure {
	o := structure{orientation: exif.Upright, end: len(file)}
	at, known := len(jpegStart)-1, false
	for {
		marker, next := nextMarker(file, at)
		switch {
		case next == 0:
			return o
		case marker == markerEOI:
			o.end = next
			return o
		case marker == markerTEM, marker >= markerRST0 && marker <= markerSOI:
			at = next
			continue
		case next+2 > len(file):
			return o
		}
		length := int(binary.BigEndian.Uint16(file[next:]))
		if length < 2 || next+length > len(file) {
			return o
		}
		body := file[next+2 : next+length]
		if marker == markerAPP1 && !known && bytes.HasPrefix(body, []byte(exifStart)) {
			o.orientation, known = exif.OrientationOf(body[len(exifStart):]), true
		}
		at = next + length
	}
}

// nextMarker returns the next marker from an offset, and the offset after it, which is zero if there is none. In the compressed
// data after the header of a scan, 0xFF is followed by a zero.
func nextMarker(file []byte, at int) (marker byte, next int) {
	for at < len(file) {
		found := bytes.IndexByte(file[at:], 0xff)
		if found < 0 {
			return 0, 0
		}
		for at += found; at < len(file) && file[at] == 0xff; at++ {
			continue // fill bytes
		}
		if at < len(file) && file[at] != 0 {
			return file[at], at + 1
		}
	}
	return 0, 0
}

// pngStructure reads the chunks of a PNG (PNG, third edition, section 5.3).
func pngStructure(file []byte) structure {
	const overhead = 12 // length, type and checksum
	o := structure{orientation: exif.Upright, end: len(file)}
	at := len(pngStart)
	for at+overhead <= len(file) {
		length := int64(binary.BigEndian.Uint32(file[at:]))
		if length > int64(len(file)-at-overhead) {
			return o
		}
		body := file[at+8:][:length]
		switch string(file[at+4 : at+8]) {
		case "eXIf":
			o.orientation = exif.OrientationOf(body)
		case "IEND":
			o.end = at + overhead + int(length)
			return o
		}
		at += overhead + int(length)
	}
	return o
}

// filmStart is the number of bytes that contain the type of a film (ISO 14496-12): after its length, without leading zeros.
const filmStart = 8

// allowedAfter reports whether data may follow the picture in a file: padding, and after a JPEG what cameras append: further
// pictures such as thumbnails and gain maps, the film of a motion photo, the trailer of Samsung phones. The rendered pictures
// contain none of it. Other data would make the file valid in two formats.
func (f format) allowedAfter(rest []byte) bool {
	rest = bytes.TrimLeft(rest, "\x00 \t\r\n")
	if len(rest) == 0 {
		return true
	}
	if f != jpegFormat {
		return false
	}
	film := bytes.Contains(rest[:min(len(rest), filmStart)], []byte("ftyp"))
	return film || bytes.HasPrefix(rest, []byte(jpegStart)) || bytes.HasSuffix(rest, []byte("SEFT"))
}
