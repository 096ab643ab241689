package files

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"hash"

	"kontor/server/apierr"
)

// The media types that files may have. They are recognised by the content alone.
const (
	mediaPDF  = "application/pdf"
	mediaJPEG = "image/jpeg"
	mediaPNG  = "image/png"
)

const (
	jpegStart = "\xff\xd8\xff"
	pngStart  = "\x89PNG\r\n\x1a\n"
	pdfStart  = "%PDF-"
)

const (
	pdfWindow  = 4096 // readers of PDF accept a header in the first kilobyte, some even later
	htmlWindow = 1445 // browsers look at so many bytes to guess a type
	tailBytes  = 66 << 10
	endWindow  = 1024 // the end of a PDF is in its last kilobyte

	// maxPixels is the size of the largest picture: common telephones take up to 50 million pixels.
	maxPixels = 60_000_000
)

// mediaOf returns the type of a file by its first bytes, or an empty text for other types.
func mediaOf(head []byte) string {
	switch {
	case bytes.HasPrefix(head, []byte(jpegStart)):
		return mediaJPEG
	case bytes.HasPrefix(head, []byte(pngStart)):
		return mediaPNG
	case bytes.HasPrefix(head, []byte(pdfStart+"1.")), bytes.HasPrefix(head, []byte(pdfStart+"2.")):
		return mediaPDF
	}
	return ""
}

// structure follows the structure of a picture while its bytes arrive.
type structure interface {
	write(p []byte)
	// verdict is called at the end with the last bytes of the file. It returns the key of a reason to reject the file, or "".
	verdict(tail []byte) string
	pixels() int64
}

// inspector checks a file while it arrives. It decodes nothing: pictures and documents are decoded in worker processes, for previews.
type inspector struct {
	media string
	size  int64
	hash  hash.Hash
	tail  []byte
	parts structure // nil for documents
}

// newInspector looks at the beginning of a file. It returns apierr.FileType for types that are not accepted, and apierr.FileInvalid for
// a file that another program could take for another type.
func newInspector(head []byte) (*inspector, error) {
	i := &inspector{media: mediaOf(head), hash: sha256.New()}
	switch i.media {
	case "":
		return nil, apierr.FileType
	case mediaPNG:
		i.parts = &pngParts{}
	case mediaJPEG:
		i.parts = &jpegParts{}
	}
	if i.media != mediaPDF && bytes.Contains(head[:min(len(head), pdfWindow)], []byte(pdfStart)) || looksLikeHTML(head) {
		return nil, invalid("files.foreign_data")
	}
	return i, nil
}

// looksLikeHTML reports whether a browser that guesses types could take the file for a page.
func looksLikeHTML(head []byte) bool {
	head = bytes.ToLower(head[:min(len(head), htmlWindow)])
	for _, tag := range []string{"<!doctype", "<html", "<script", "<iframe", "<svg", "<body"} {
		if bytes.Contains(head, []byte(tag)) {
			return true
		}
	}
	return false
}

// invalid returns the error for a file that is rejected, with the key of the reason.
func invalid(reason string, args ...apierr.Args) error {
	var problems apierr.Fields
	problems.Add(fileMember, reason, args...)
	return &apierr.Error{Kind: apierr.FileInvalid, Fields: &problems}
}

// write takes the next bytes of the file. It returns apierr.FileInvalid as soon as a picture turns out to have too many pixels.
func (i *inspector) write(p []byte) error {
	i.size += int64(len(p))
	i.hash.Write(p)
	if keep := tailBytes - len(p); keep > 0 {
		i.tail = append(i.tail[max(0, len(i.tail)-keep):], p...)
	} else {
		i.tail = append(i.tail[:0], p[len(p)-tailBytes:]...)
	}
	if i.parts == nil {
		return nil
	}
	i.parts.write(p)
	if i.parts.pixels() > maxPixels {
		return invalid("files.too_many_pixels", apierr.Args{"Max": maxPixels})
	}
	return nil
}

// verdict returns apierr.FileInvalid for a file that is cut off, or that contains more than its type allows.
func (i *inspector) verdict() error {
	var reason string
	switch {
	case endsAsArchive(i.tail):
		reason = "files.foreign_data"
	case i.parts != nil:
		reason = i.parts.verdict(i.tail)
	case !bytes.Contains(i.tail[max(0, len(i.tail)-endWindow):], []byte("%%EOF")):
		reason = "files.damaged"
	}
	if reason != "" {
		return invalid(reason)
	}
	return nil
}

// endsAsArchive reports whether the file is also a ZIP archive: its directory is found from the end of the file, and a comment of up
// to 64 KiB may follow it. Programs in Java, and office documents, are such archives.
func endsAsArchive(tail []byte) bool {
	const record, commentAt = 22, 20
	for end := len(tail); ; {
		at := bytes.LastIndex(tail[:end], []byte("PK\x05\x06"))
		if at < 0 {
			return false
		}
		if at+record <= len(tail) && at+record+int(binary.LittleEndian.Uint16(tail[at+commentAt:])) <= len(tail) {
			return true
		}
		end = at
	}
}
