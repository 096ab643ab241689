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

// pdfHeaderWindow is the range in which the signature of a PDF may begin: some mail gateways prepend bytes.
const pdfHeaderWindow = 4096

// sniff returns the kind of a file by its content. readable is false for kinds that cannot be read; the kind is then for the
// error message.
func sniff(file []byte) (kind string, readable bool) {
	for _, m := range readableSignatures {
		if bytes.HasPrefix(file, []byte(m.prefix)) {
			return m.kind, true
		}
	}
	if len(file) >= 12 && string(file[:4]) == "RIFF" && string(file[8:12]) == "WEBP" {
		return kindWebP, true
	}
	if len(file) >= 12 && string(file[4:8]) == "ftyp" {
		return isoMedia(string(file[8:12])), false
	}
	for _, m := range unreadableSignatures {
		if bytes.HasPrefix(file, []byte(m.prefix)) {
			return m.kind, false
		}
	}
	if bytes.Contains(file[:min(len(file), pdfHeaderWindow)], []byte("%PDF-")) {
		return kindPDF, true
	}
	return textKind(file), false
}

// signature is the beginning of files of a kind.
type signature struct{ prefix, kind string }

var readableSignatures = []signature{
	{"%PDF-", kindPDF}, {"\x89PNG\r\n\x1a\n", kindPNG}, {"\xff\xd8\xff", kindJPEG},
	{"GIF87a", kindGIF}, {"GIF89a", kindGIF}, {"BM", kindBMP},
	{"II*\x00", kindTIFF}, {"MM\x00*", kindTIFF},
}

var unreadableSignatures = []signature{
	{"PK\x03\x04", "ZIP"}, {"\xd0\xcf\x11\xe0", "OLE"}, {"%!PS", "PostScript"}, {"{\\rtf", "RTF"},
	{"II+\x00", "BigTIFF"}, {"MM\x00+", "BigTIFF"}, {"\x00\x00\x00\x0cjP  ", "JPEG 2000"},
	{"\xff\x0a", "JPEG XL"}, {"\x00\x00\x00\x0cJXL ", "JPEG XL"}, {"\x1f\x8b", "gzip"}, {"7z\xbc\xaf", "7z"},
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
