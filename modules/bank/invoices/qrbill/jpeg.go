package qrbill

import (
	"bytes"
	"encoding/binary"
	"image"
	"image/color"
	"image/draw"
	"io"

	"golang.org/x/image/tiff"

	"kontor/modules/bank/invoices/qrbill/symbol"
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

// Tags of a TIFF directory.
const (
	tagWidth         = 256
	tagHeight        = 257
	tagCompression   = 259
	tagStripOffsets  = 273
	tagRowsPerStrip  = 278
	tagStripCounts   = 279
	tagTileWidth     = 322
	tagTileHeight    = 323
	tagTileOffsets   = 324
	tagTileCounts    = 325
	tagJPEGTables    = 347
	compressionJPEG  = 7
	maxTIFFPieces    = 1 << 16
	maxDirectorySize = 1 << 12
)

// tiffFile is a TIFF with all its pages. The library supports only the first page, and no JPEG compression.
type tiffFile struct {
	file        []byte
	order       binary.ByteOrder
	directories []uint32
	limits      Limits
}

func openTIFF(file []byte, limits Limits) (*tiffFile, error) {
	t := &tiffFile{file: file, order: binary.LittleEndian, limits: limits}
	if len(file) < 8 {
		return nil, errorf(DamagedFile, "TIFF of %d bytes", len(file))
	}
	if file[0] == 'M' {
		t.order = binary.BigEndian
	}
	next, seen := t.order.Uint32(file[4:]), map[uint32]bool{}
	for next != 0 && !seen[next] && len(t.directories) < limits.Pages+1 {
		entries, ok := t.entries(next)
		if !ok {
			break // the pages before a damaged directory are readable
		}
		seen[next] = true
		t.directories = append(t.directories, next)
		end := int(next) + 2 + 12*entries
		if end+4 > len(file) {
			break
		}
		next = t.order.Uint32(file[end:])
	}
	if len(t.directories) == 0 {
		return nil, errorf(DamagedFile, "TIFF without a page")
	}
	return t, nil
}

func (t *tiffFile) pages() int { return len(t.directories) }
func (t *tiffFile) close()     {}

func (t *tiffFile) position(index int, code symbol.Code) float64 {
	return height(t.orientation(t.directories[index]), code.X, code.Y)
}

// entries returns the number of entries of the directory at an offset, and whether the directory is inside the file.
func (t *tiffFile) entries(offset uint32) (int, bool) {
	if int64(offset)+2 > int64(len(t.file)) {
		return 0, false
	}
	n := int(t.order.Uint16(t.file[offset:]))
	return n, n > 0 && n < maxDirectorySize && int64(offset)+2+12*int64(n) <= int64(len(t.file))
}

func (t *tiffFile) page(index int, finer bool) (*symbol.Gray, error) {
	if finer {
		return nil, nil
	}
	directory := t.directories[index]
	if values := t.values(directory, tagCompression); len(values) > 0 && values[0] == compressionJPEG {
		return t.jpegPage(directory)
	}
	c := codec{
		config: func(io.Reader) (image.Config, error) { return tiff.DecodeConfig(t.startingAt(directory)) },
		decode: func(io.Reader) (image.Image, error) { return tiff.Decode(t.startingAt(directory)) },
	}
	return decodePicture(t.file, c, kindTIFF, t.limits)
}

// startingAt returns the file with another first page.
func (t *tiffFile) startingAt(directory uint32) io.Reader {
	header := append([]byte(nil), t.file[:8]...)
	t.order.PutUint32(header[4:], directory)
	return &overlay{Reader: bytes.NewReader(t.file), head: header}
}

// overlay is a file whose first bytes are replaced.
type overlay struct {
	*bytes.Reader
	head []byte
}

func (o *overlay) ReadAt(p []byte, offset int64) (int, error) {
	n, err := o.Reader.ReadAt(p, offset)
	if offset < int64(len(o.head)) {
		copy(p[:n], o.head[offset:])
	}
	return n, err
}

// values returns the numbers of a tag.
func (t *tiffFile) values(directory uint32, tag uint16) []uint32 {
	raw, kind := t.raw(directory, tag)
	var list []uint32
	switch kind {
	case 3:
		for ; len(raw) >= 2; raw = raw[2:] {
			list = append(list, uint32(t.order.Uint16(raw)))
		}
	case 4:
		for ; len(raw) >= 4; raw = raw[4:] {
			list = append(list, t.order.Uint32(raw))
		}
	}
	return list
}

// raw returns the bytes of a tag and the type of its values.
func (t *tiffFile) raw(directory uint32, tag uint16) ([]byte, uint16) {
	n, _ := t.entries(directory)
	for i := range n {
		entry := t.file[int(directory)+2+12*i:][:12]
		if t.order.Uint16(entry) != tag {
			continue
		}
		kind, count := t.order.Uint16(entry[2:]), int64(t.order.Uint32(entry[4:]))
		size := count * map[uint16]int64{1: 1, 2: 1, 3: 2, 4: 4, 7: 1}[kind]
		if size <= 4 {
			return entry[8 : 8+size], kind
		}
		return t.section(t.order.Uint32(entry[8:]), size), kind
	}
	return nil, 0
}

// section returns a part of the file, or nil when it is outside the file.
func (t *tiffFile) section(offset uint32, size int64) []byte {
	if size < 0 || int64(offset)+size > int64(len(t.file)) {
		return nil
	}
	return t.file[offset : int64(offset)+size]
}

// first returns the first value of a tag, or fallback.
func (t *tiffFile) first(directory uint32, tag uint16, fallback int) int {
	if values := t.values(directory, tag); len(values) > 0 {
		return int(values[0])
	}
	return fallback
}

// jpegPage decodes a page whose strips or tiles are JPEG images.
func (t *tiffFile) jpegPage(directory uint32) (*symbol.Gray, error) {
	width, height := t.first(directory, tagWidth, 0), t.first(directory, tagHeight, 0)
	config := image.Config{Width: width, Height: height}
	if err := t.limits.checkPicture(config, bytesPerPixel(color.GrayModel)); err != nil {
		return nil, err
	}
	pieceWidth, pieceHeight := width, t.first(directory, tagRowsPerStrip, height)
	offsets, counts := t.values(directory, tagStripOffsets), t.values(directory, tagStripCounts)
	if tiles := t.values(directory, tagTileOffsets); len(tiles) > 0 {
		offsets, counts = tiles, t.values(directory, tagTileCounts)
		pieceWidth, pieceHeight = t.first(directory, tagTileWidth, 0), t.first(directory, tagTileHeight, 0)
	}
	if pieceWidth <= 0 || pieceHeight <= 0 || len(offsets) == 0 || len(offsets) != len(counts) || len(offsets) > maxTIFFPieces {
		return nil, errorf(DamagedFile, "TIFF with incomplete strips")
	}
	tables, _ := t.raw(directory, tagJPEGTables)
	page := image.NewGray(image.Rect(0, 0, width, height))
	across := (width + pieceWidth - 1) / pieceWidth
	for i := range offsets {
		corner := image.Pt(i%across*pieceWidth, i/across*pieceHeight)
		if corner.Y >= height {
			break
		}
		stream := withTables(tables, t.section(offsets[i], int64(counts[i])))
		gray, err := decodePicture(stream, codecs[kindJPEG], kindTIFF, t.limits)
		if err != nil {
			return nil, err
		}
		part := &image.Gray{Pix: gray.Pix, Stride: gray.W, Rect: image.Rect(0, 0, gray.W, gray.H)}
		draw.Draw(page, part.Rect.Add(corner), part, image.Point{}, draw.Src)
	}
	return toGray(page), nil
}

// withTables prepends the shared tables of a TIFF to an abbreviated JPEG stream.
func withTables(tables, stream []byte) []byte {
	if len(tables) < 4 || len(stream) < 2 {
		return stream
	}
	joined := append([]byte(nil), tables[:len(tables)-2]...) // without the end marker
	return append(joined, stream[2:]...)                     // without the start marker
}

// Kinds of files that can be read.
const (
	kindPDF  = "PDF"
	kindPNG  = "PNG"
	kindJPEG = "JPEG"
	kindGIF  = "GIF"
	kindBMP  = "BMP"
	kindWebP = "WebP"
	kindTIFF = "TIFF"
)

// pdfHeaderWindow is the range in which the signature of a PDF may begin: some mail gateways prepend bytes.
const pdfHeaderWindow = 4096

// sniff returns the kind of a file by its content. readable is false for kinds that cannot be read; the kind is then for the
// error message.
func sniff(file []byte) (kind string, readable bool) {
	for _, m := range signatures {
		if bytes.HasPrefix(file, []byte(m.prefix)) {
			return m.kind, m.readable
		}
	}
	if len(file) >= 12 && string(file[:4]) == "RIFF" && string(file[8:12]) == "WEBP" {
		return kindWebP, true
	}
	if len(file) >= 12 && string(file[4:8]) == "ftyp" {
		return isoMedia(string(file[8:12])), false
	}
	if bytes.Contains(file[:min(len(file), pdfHeaderWindow)], []byte("%PDF-")) {
		return kindPDF, true
	}
	return textKind(file), false
}

// signatures are the beginnings of files of a kind.
var signatures = []struct {
	prefix, kind string
	readable     bool
}{
	{"%PDF-", kindPDF, true}, {"\x89PNG\r\n\x1a\n", kindPNG, true}, {"\xff\xd8\xff", kindJPEG, true},
	{"GIF87a", kindGIF, true}, {"GIF89a", kindGIF, true}, {"BM", kindBMP, true},
	{"II*\x00", kindTIFF, true}, {"MM\x00*", kindTIFF, true},
	{"PK\x03\x04", "ZIP", false}, {"\xd0\xcf\x11\xe0", "OLE", false}, {"%!PS", "PostScript", false}, {"{\\rtf", "RTF", false},
	{"II+\x00", "BigTIFF", false}, {"MM\x00+", "BigTIFF", false}, {"\x00\x00\x00\x0cjP  ", "JPEG 2000", false},
	{"\xff\x0a", "JPEG XL", false}, {"\x00\x00\x00\x0cJXL ", "JPEG XL", false}, {"\x1f\x8b", "gzip", false}, {"7z\xbc\xaf", "7z", false},
}

// isoMedia returns the kind of a file in an ISO base media container, such as MP4.
func isoMedia(brand string) string {
	switch brand {
	case "heic", "heix", "hevc", "hevx", "heim", "heis", "mif1", "msf1":
		return "HEIC"
	case "avif", "avis":
		return "AVIF"
	}
	return "MP4"
}

// textKind returns the kind of a text file, or "".
func textKind(file []byte) string {
	head := bytes.ToLower(bytes.TrimLeft(bytes.TrimPrefix(file[:min(len(file), 512)], []byte(byteOrderMark)), " \t\r\n"))
	switch {
	case bytes.Contains(head, []byte("<svg")):
		return "SVG"
	case bytes.HasPrefix(head, []byte("<!doctype html")), bytes.HasPrefix(head, []byte("<html")):
		return "HTML"
	case bytes.HasPrefix(head, []byte("<?xml")):
		return "XML"
	}
	return ""
}
