package qrbill

import "bytes"

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

// pdfHeaderWindow is how far from the beginning the mark of a PDF may stand;
// mail gateways put bytes before it.
const pdfHeaderWindow = 4096

// sniff tells what a file is by its content, whatever its name. The second
// answer is false for kinds that cannot be read; the name is then for the message.
func sniff(file []byte) (kind string, readable bool) {
	for _, m := range readableMarks {
		if bytes.HasPrefix(file, []byte(m.mark)) {
			return m.kind, true
		}
	}
	if len(file) >= 12 && string(file[:4]) == "RIFF" && string(file[8:12]) == "WEBP" {
		return kindWebP, true
	}
	if len(file) >= 12 && string(file[4:8]) == "ftyp" {
		return isoMedia(string(file[8:12])), false
	}
	for _, m := range knownMarks {
		if bytes.HasPrefix(file, []byte(m.mark)) {
			return m.kind, false
		}
	}
	if bytes.Contains(file[:min(len(file), pdfHeaderWindow)], []byte("%PDF-")) {
		return kindPDF, true
	}
	return textKind(file), false
}

type mark struct{ mark, kind string }

var readableMarks = []mark{
	{"%PDF-", kindPDF}, {"\x89PNG\r\n\x1a\n", kindPNG}, {"\xff\xd8\xff", kindJPEG},
	{"GIF87a", kindGIF}, {"GIF89a", kindGIF}, {"BM", kindBMP},
	{"II*\x00", kindTIFF}, {"MM\x00*", kindTIFF},
}

var knownMarks = []mark{
	{"PK\x03\x04", "ZIP"}, {"\xd0\xcf\x11\xe0", "OLE"}, {"%!PS", "PostScript"}, {"{\\rtf", "RTF"},
	{"II+\x00", "BigTIFF"}, {"MM\x00+", "BigTIFF"}, {"\x00\x00\x00\x0cjP  ", "JPEG 2000"},
	{"\xff\x0a", "JPEG XL"}, {"\x00\x00\x00\x0cJXL ", "JPEG XL"}, {"\x1f\x8b", "gzip"}, {"7z\xbc\xaf", "7z"},
}

// isoMedia names the formats that share the container of MPEG-4.
func isoMedia(brand string) string {
	switch brand {
	case "heic", "heix", "hevc", "hevx", "heim", "heis", "mif1", "msf1":
		return "HEIC"
	case "avif", "avis":
		return "AVIF"
	}
	return "MP4"
}

// textKind names what begins like text; "" is anything else.
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
