package qrbill

import (
	"bytes"
	"encoding/binary"
	"image/color"

	"kontor/modules/kit/exif"
)

// Markers of JPEG segments.
const (
	jpegFill         = 0xff
	jpegStart        = 0xd8
	jpegFrame        = 0xc0 // frames are 0xc0 to 0xcf, without the markers for Huffman tables, extensions and arithmetic coding
	jpegProgressive  = 0xc2
	jpegHuffman      = 0xc4
	jpegExtension    = 0xc8
	jpegArithmetic   = 0xcc
	jpegLastFrame    = 0xcf
	jpegScan         = 0xda
	jpegApplication1 = 0xe1
)

// coefficientBytes is the memory per sample that the decoder of a progressive JPEG uses until it has read the last pass.
const coefficientBytes = 4

// jpegHeader is the information before the pixels of a JPEG.
type jpegHeader struct {
	progressive bool
	samples     float64 // samples per pixel: 3 for full colour, 1.5 with colours at half the resolution
	up          exif.Orientation
}

func isJPEG(file []byte) bool { return len(file) > 1 && file[0] == jpegFill && file[1] == jpegStart }

// readJPEGHeader reads the segments of a JPEG. It ignores errors, which the decoder reports.
func readJPEGHeader(file []byte) jpegHeader {
	outline := jpegHeader{samples: 1}
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
			if data, found := bytes.CutPrefix(segment, []byte("Exif\x00\x00")); found {
				outline.up = exif.OrientationOf(data)
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

// samplesOf returns the number of samples per pixel in the header of a frame. Each component has horizontal and vertical
// sampling factors, relative to the largest ones.
func samplesOf(frame []byte) float64 {
	const headerBytes, componentBytes = 6, 3
	var sum, maxH, maxV int
	for at := headerBytes; at+componentBytes <= len(frame); at += componentBytes {
		h, v := int(frame[at+1]>>4), int(frame[at+1]&15)
		sum += h * v
		maxH, maxV = max(maxH, h), max(maxV, v)
	}
	if sum == 0 {
		return 1
	}
	return float64(sum) / float64(maxH*maxV)
}

// bytesPerPixel returns the memory per pixel that the decoder uses for a JPEG of a colour model.
func (o jpegHeader) bytesPerPixel(model color.Model) float64 {
	depth := bytesPerPixel(model)
	if model == color.YCbCrModel {
		depth = o.samples
	}
	if o.progressive {
		depth += coefficientBytes * o.samples
	}
	return depth
}
