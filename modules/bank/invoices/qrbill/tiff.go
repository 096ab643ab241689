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
)

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
