package qrbill

import (
	"bytes"
	"encoding/binary"
	"image/color"
)

// Marks of the segments of a JPEG.
const (
	jpegFill         = 0xff
	jpegStart        = 0xd8
	jpegFrame        = 0xc0 // to jpegLastFrame, with the four other marks below between them
	jpegProgressive  = 0xc2
	jpegHuffman      = 0xc4
	jpegExtension    = 0xc8
	jpegArithmetic   = 0xcc
	jpegLastFrame    = 0xcf
	jpegScan         = 0xda
	jpegApplication1 = 0xe1
)

// coefficientBytes is what the decoder keeps for each sample of a progressive
// JPEG until the last of its passes is read.
const coefficientBytes = 4

// jpegOutline is what stands in a JPEG before its pixels.
type jpegOutline struct {
	progressive bool
	samples     float64 // for each pixel: 3 in full colour, 1.5 when colours have half the size
	up          orientation
}

func isJPEG(file []byte) bool { return len(file) > 1 && file[0] == jpegFill && file[1] == jpegStart }

// outlineJPEG walks over the segments of a JPEG. What is broken in them remains
// for the decoder to find.
func outlineJPEG(file []byte) jpegOutline {
	outline := jpegOutline{samples: 1}
	for at := 2; at+4 <= len(file) && file[at] == jpegFill; {
		mark := file[at+1]
		if mark == jpegFill {
			at++
			continue
		}
		size := int(binary.BigEndian.Uint16(file[at+2:]))
		if mark == jpegScan || size < 2 || at+2+size > len(file) {
			break
		}
		segment := file[at+4 : at+2+size]
		switch {
		case mark == jpegApplication1:
			if exif, found := bytes.CutPrefix(segment, []byte("Exif\x00\x00")); found {
				outline.up = orientationOf(exif)
			}
		case mark == jpegHuffman || mark == jpegExtension || mark == jpegArithmetic:
		case mark >= jpegFrame && mark <= jpegLastFrame:
			outline.progressive = mark == jpegProgressive
			outline.samples = samplesOf(segment)
		}
		at += 2 + size
	}
	return outline
}

// samplesOf counts the samples for each pixel in the header of a frame: each
// component tells how many it has across and down where the finest has most.
func samplesOf(frame []byte) float64 {
	const head, each = 6, 3
	var sum, across, down int
	for at := head; at+each <= len(frame); at += each {
		h, v := int(frame[at+1]>>4), int(frame[at+1]&15)
		sum += h * v
		across, down = max(across, h), max(down, v)
	}
	if sum == 0 {
		return 1
	}
	return float64(sum) / float64(across*down)
}

// bytesPerPixel is what the decoder takes for a JPEG of a colour model.
func (o jpegOutline) bytesPerPixel(model color.Model) float64 {
	depth := bytesPerPixel(model)
	if model == color.YCbCrModel {
		depth = o.samples
	}
	if o.progressive {
		depth += coefficientBytes * o.samples
	}
	return depth
}
