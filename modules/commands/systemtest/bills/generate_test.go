package bills_test

import (
	"bytes"
	"compress/zlib"
	endian "encoding/binary"
	"fmt"
	"hash/crc32"
	"math/rand/v2"
	"strings"
)

// hostileKinds generate kinds of malicious files, with random variations.
var hostileKinds = []struct {
	name string
	make func(*rand.Rand) []byte
}{
	{"paths", func(r *rand.Rand) []byte {
		return onePager(deflate(repeated(paths[r.IntN(len(paths))], 300_000+r.IntN(200_000))))
	}},
	{"forms that call each other", func(r *rand.Rand) []byte { return nestedForms(8+r.IntN(4), 10) }},
	{"a form that calls itself", func(*rand.Rand) []byte { return nestedForms(1, 10) }},
	{"a content bomb", func(r *rand.Rand) []byte { return onePager(deflate(repeated(" ", (50+r.IntN(100))<<20))) }},
	{"a bomb in a bomb", func(r *rand.Rand) []byte {
		inner := deflate(repeated("q ", (20+r.IntN(20))<<20))
		return document("<</Type/Catalog/Pages 2 0 R>>", onePage, pageObject, "<</Filter[/FlateDecode/FlateDecode]"+stream(deflate(inner)))
	}},
	{"endless graphics states", func(r *rand.Rand) []byte {
		return onePager(deflate(repeated("q 1 0 0 1 1 1 cm ", 200_000+r.IntN(300_000))))
	}},
	{"clips", func(r *rand.Rand) []byte {
		return onePager(deflate(repeated("0 0 499 499 re 9 9 m 400 99 l 9 400 l h W n ", 20_000+r.IntN(50_000))))
	}},
	{"a program per pixel", shading},
	{"a pattern of tiny tiles", pattern},
	{"deep arrays", func(r *rand.Rand) []byte {
		depth := 10_000 + r.IntN(200_000)
		return document("<</Type/Catalog/Pages 2 0 R/X "+repeated("[", depth)+repeated("]", depth)+">>", onePage, pageObject, "<<"+stream(nil))
	}},
	{"deep dictionaries", func(r *rand.Rand) []byte {
		return document("<</Type/Catalog/Pages 2 0 R/X "+repeated("<</A", 5_000+r.IntN(100_000)), onePage, pageObject, "<<"+stream(nil))
	}},
	{"a circular tree of pages", func(r *rand.Rand) []byte {
		return document("<</Type/Catalog/Pages 2 0 R>>", fmt.Sprintf("<</Type/Pages/Kids[3 0 R 2 0 R]/Count %d>>", 2+r.IntN(1000)), "<</Type/Pages/Parent 2 0 R/Kids[2 0 R]/Count 9>>")
	}},
	{"thousands of pages", func(r *rand.Rand) []byte {
		n := 2_000 + r.IntN(20_000)
		return document("<</Type/Catalog/Pages 2 0 R>>", fmt.Sprintf("<</Type/Pages/Kids[%s]/Count %d>>", repeated("3 0 R ", n), n), pageObject, "<<"+stream(nil))
	}},
	{"an endless page", func(r *rand.Rand) []byte {
		box := strings.Replace(pageObject, "500 500", fmt.Sprintf("%d 0.001", 1+r.IntN(1<<30)), 1)
		return document("<</Type/Catalog/Pages 2 0 R>>", onePage, box, "<<"+stream(nil))
	}},
	{"a circular reference table", func(r *rand.Rand) []byte {
		file := onePager(nil)
		return bytes.Replace(file, []byte("/Root 1 0 R"), fmt.Appendf(nil, "/Root 1 0 R/Prev %d", bytes.LastIndex(file, []byte("xref\n0"))-r.IntN(2)), 1)
	}},
	{"a huge image in a document", func(r *rand.Rand) []byte {
		side := 8_000 + r.IntN(8_000)
		image := fmt.Sprintf("<</Type/XObject/Subtype/Image/Width %d/Height %d/BitsPerComponent 8/ColorSpace/DeviceGray/Filter/FlateDecode", side, side)
		return document("<</Type/Catalog/Pages 2 0 R>>", onePage, resourcesOf("/XObject<</F 5 0 R>>"), "<<"+stream([]byte("500 0 0 500 0 0 cm /F Do")),
			image+stream(deflate(repeated("\x00", side*side/4))))
	}},
	{"a PNG with a false size", func(r *rand.Rand) []byte { return pngFile(30_000+r.Uint32N(1<<30), 30_000, 8, deflate("little")) }},
	{"a large blank picture", func(r *rand.Rand) []byte {
		side := 5_000 + r.Uint32N(2_500)
		return pngFile(side, side, 1, deflate(repeated("\x00", int(side)*(int(side)/8+2))))
	}},
	{"a picture of noise", func(r *rand.Rand) []byte {
		const side = 1_500
		rows := make([]byte, side*(side+1))
		for i := range rows {
			rows[i] = byte(r.Uint32())
		}
		for y := range side {
			rows[y*(side+1)] = 0
		}
		return pngFile(side, side, 8, deflate(string(rows)))
	}},
	{"a BMP with a false size", func(r *rand.Rand) []byte {
		head := append([]byte("BM"), make([]byte, 52)...)
		head[10], head[14], head[26], head[28] = 54, 40, 1, 24
		endian.LittleEndian.PutUint32(head[18:], 1+r.Uint32N(1<<31-1))
		endian.LittleEndian.PutUint32(head[22:], 1+r.Uint32N(1<<31-1))
		return head
	}},
	{"a circular TIFF", func(r *rand.Rand) []byte {
		return append([]byte("II*\x00\x08\x00\x00\x00\x00\x00\x08\x00\x00\x00"), make([]byte, r.IntN(100))...)
	}},
	{"an endless GIF", func(r *rand.Rand) []byte {
		return append([]byte("GIF89a\xff\x1f\xff\x1f\x80\x00\x00\x00\x00\x00\xff\xff\xff,\x00\x00\x00\x00\xff\x1f\xff\x1f\x00\x02"), repeated("\x02\x4c\x01", 1000+r.IntN(20_000))...)
	}},
	{"a JPEG with a false size", func(r *rand.Rand) []byte {
		return append([]byte("\xff\xd8\xff\xc2\x00\x11\x08\xff\xff\xff\xff\x03\x01\x22\x00\x02\x11\x01\x03\x11\x01"), make([]byte, 1+r.IntN(200))...)
	}},
	{"an empty WebP", func(r *rand.Rand) []byte {
		return append([]byte("RIFF\xff\xff\x00\x00WEBPVP8L\xff\xff\x00\x00\x2f\xff\xff\xff\xff"), make([]byte, r.IntN(500))...)
	}},
	{"a polyglot", func(r *rand.Rand) []byte {
		heads := []string{"GIF89a", "PK\x03\x04", "<svg>", "\x7fELF", "#!/bin/sh\n", "\x89PNG\r\n\x1a\n"}
		return append([]byte(heads[r.IntN(len(heads))]+repeated("\n", r.IntN(3000))), onePager(deflate(repeated(paths[0], 400_000)))...)
	}},
	{"a truncated file", func(r *rand.Rand) []byte {
		file := []([]byte){nestedForms(5, 10), onePager(deflate(repeated(paths[1], 100_000))), pngFile(900, 900, 8, deflate(repeated("\x00", 900*901)))}[r.IntN(3)]
		return file[:10+r.IntN(len(file)-10)]
	}},
	{"a corrupted file", func(r *rand.Rand) []byte {
		file := bytes.Clone(nestedForms(3, 3))
		for range 1 + r.IntN(50) {
			file[8+r.IntN(len(file)-8)] = byte(r.Uint32())
		}
		return file
	}},
}

// hostileFile returns the file with a number, which is always the same.
func hostileFile(n int) (kind string, file []byte) {
	k := hostileKinds[n%len(hostileKinds)]
	return k.name, k.make(rand.New(rand.NewPCG(uint64(n), 11)))
}

// paths are operators that are expensive to render.
var paths = []string{"0 0 m 500 500 l S ", "0 0 500 500 re f ", "0 0 m 500 0 500 500 0 500 c B* ", "9 w 0 0 m 500 1 l 1 500 l s "}

const (
	onePage    = "<</Type/Pages/Kids[3 0 R]/Count 1>>"
	pageObject = "<</Type/Page/Parent 2 0 R/MediaBox[0 0 500 500]/Contents 4 0 R>>"
)

func resourcesOf(resources string) string {
	return strings.TrimSuffix(pageObject, ">>") + "/Resources<<" + resources + ">>>>"
}

func repeated(text string, n int) string { return strings.Repeat(text, n) }

// deflate compresses data with zlib, as PDF and PNG do.
func deflate[T string | []byte](data T) []byte {
	var b bytes.Buffer
	w, _ := zlib.NewWriterLevel(&b, zlib.BestSpeed) // the level is valid
	_, _ = w.Write([]byte(data))                    // a buffer never fails
	_ = w.Close()
	return b.Bytes()
}

// stream returns the end of a dictionary, and the stream that it describes.
func stream(data []byte) string {
	return fmt.Sprintf("/Length %d>>\nstream\n%s\nendstream", len(data), data)
}

// onePager returns a document of one page with compressed content.
func onePager(content []byte) []byte {
	return document("<</Type/Catalog/Pages 2 0 R>>", onePage, pageObject, "<</Filter/FlateDecode"+stream(content))
}

// document returns a PDF with objects, of which the first is the root.
func document(objects ...string) []byte {
	var b bytes.Buffer
	b.WriteString("%PDF-1.7\n")
	var offsets []int
	for i, object := range objects {
		offsets = append(offsets, b.Len())
		fmt.Fprintf(&b, "%d 0 obj\n%s\nendobj\n", i+1, object)
	}
	start := b.Len()
	fmt.Fprintf(&b, "xref\n0 %d\n0000000000 65535 f \n", len(objects)+1)
	for _, offset := range offsets {
		fmt.Fprintf(&b, "%010d 00000 n \n", offset)
	}
	fmt.Fprintf(&b, "trailer<</Size %d/Root 1 0 R>>\nstartxref\n%d\n%%%%EOF", len(objects)+1, start)
	return b.Bytes()
}

// nestedForms returns a document whose forms call each other; the last one calls itself.
func nestedForms(levels, calls int) []byte {
	objects := []string{"<</Type/Catalog/Pages 2 0 R>>", onePage, resourcesOf("/XObject<</F 5 0 R>>"), "<<" + stream([]byte("/F Do"))}
	for level := range levels {
		next := 5 + min(level+1, levels-1)
		objects = append(objects, fmt.Sprintf("<</Type/XObject/Subtype/Form/BBox[0 0 500 500]/Resources<</XObject<</F %d 0 R>>>>", next)+
			stream([]byte("0 0 500 500 re f "+repeated("/F Do ", calls))))
	}
	return document(objects...)
}

// shading returns a document with a program of up to 1000 steps per pixel.
func shading(r *rand.Rand) []byte {
	program := "{" + repeated("dup mul 1 add sqrt ", 200+r.IntN(800)) + "exch pop dup dup}"
	return document("<</Type/Catalog/Pages 2 0 R>>", onePage, resourcesOf("/Shading<</S 5 0 R>>"), "<<"+stream([]byte("500 0 0 500 0 0 cm /S sh")),
		"<</ShadingType 1/ColorSpace/DeviceRGB/Function 6 0 R>>",
		"<</FunctionType 4/Domain[0 1 0 1]/Range[0 1 0 1 0 1]"+stream([]byte(program)))
}

// pattern returns a document with a page of tiles that are much smaller than a pixel.
func pattern(r *rand.Rand) []byte {
	step := 0.0001 * float64(1+r.IntN(100))
	tile := fmt.Sprintf("<</Type/Pattern/PatternType 1/PaintType 1/TilingType 1/BBox[0 0 1 1]/XStep %f/YStep %f/Resources<<>>", step, step)
	return document("<</Type/Catalog/Pages 2 0 R>>", onePage, resourcesOf("/Pattern<</P 5 0 R>>"),
		"<<"+stream([]byte("/Pattern cs /P scn 0 0 500 500 re f")), tile+stream([]byte("0 0 1 1 re f")))
}

// pngFile returns a grey PNG, whose header need not match its pixels.
func pngFile(width, height uint32, depth byte, pixels []byte) []byte {
	file := []byte("\x89PNG\r\n\x1a\n")
	chunk := func(kind string, body []byte) {
		file = endian.BigEndian.AppendUint32(file, uint32(len(body)))
		start := len(file)
		file = append(append(file, kind...), body...)
		file = endian.BigEndian.AppendUint32(file, crc32.ChecksumIEEE(file[start:]))
	}
	header := endian.BigEndian.AppendUint32(endian.BigEndian.AppendUint32(nil, width), height)
	chunk("IHDR", append(header, depth, 0, 0, 0, 0))
	chunk("IDAT", pixels)
	chunk("IEND", nil)
	return file
}
