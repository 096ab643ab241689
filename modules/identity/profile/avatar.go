package profile

import (
	"bytes"
	"context"
	"encoding/binary"
	"io"
	"net/http"
	"runtime"
	"time"

	"github.com/gofiber/fiber/v2"
	"golang.org/x/sync/semaphore"

	"kontor/modules/kit/exif"
	"kontor/modules/kit/sandbox"
	"kontor/modules/kit/upload"
	"kontor/server/apierr"
	"kontor/server/endpoint"
	"kontor/server/etag"
)

// filePart returns the file in a multipart body. It returns apierr.InvalidInput if there is none or more than one, and
// apierr.PayloadTooLarge for a file of more than limit bytes. It ignores the name and type that the client states.
func filePart(contentType string, body []byte, limit int64) ([]byte, error) {
	if len(body) == 0 {
		return nil, apierr.Invalid(upload.FileMember, "invalid.required")
	}
	form, err := upload.NewForm(contentType, bytes.NewReader(body))
	if form == nil && err == nil {
		err = apierr.Invalid(upload.FileMember, "files.invalid_multipart")
	}
	if err != nil {
		return nil, err
	}
	part, err := form.File()
	if err != nil {
		return nil, err
	}
	file, err := io.ReadAll(io.LimitReader(part, limit+1))
	switch {
	case err != nil:
		return nil, err
	case int64(len(file)) > limit:
		return nil, apierr.PayloadTooLarge.With(apierr.Args{"Max": limit})
	}
	if err := form.End(); err != nil {
		return nil, err
	}
	if len(file) == 0 {
		return nil, apierr.Invalid(upload.FileMember, "invalid.required")
	}
	return file, nil
}

// avatarPath is the path of pictures; the name of the file follows.
const avatarPath = "/v1/avatars/"

// picture is one size of a user's picture.
type picture struct {
	pixels    int64 // width and height
	mediaType string
	token     string
	content   []byte
}

// extensions are the file extensions by media type.
var extensions = map[string]string{"image/jpeg": ".jpg", "image/png": ".png"}

// file returns the last part of the URL of the picture.
func (p picture) file() string { return p.token + extensions[p.mediaType] }

// avatarOf returns the URLs of a user's pictures, the large one first.
func avatarOf(pictures []picture) Avatar {
	large, small := pictures[0], pictures[len(pictures)-1]
	return Avatar{URL: avatarPath + large.file(), ThumbnailURL: avatarPath + small.file(), token: large.token}
}

// serve serves a picture. The content of a URL never changes, so clients may cache it for good. Shared caches must not keep it:
// it may be removed. A restrictive content security policy protects readers who open the URL as a page.
func (s *Service) serve(ctx context.Context, r *endpoint.Request) error {
	file := r.Params[0]
	token := file
	for _, extension := range extensions {
		if cut := len(file) - len(extension); cut > 0 && file[cut:] == extension {
			token = file[:cut]
		}
	}
	_, known := etag.NoneMatch(string(r.Fiber.Request().Header.Peek(fiber.HeaderIfNoneMatch)), token)
	read := selectPicture
	if known {
		read = selectMedia
	}
	p, err := read(ctx, s.db, token)
	if err != nil {
		return err
	}
	if p.file() != file {
		return apierr.AvatarNotFound
	}
	response := r.Fiber.Response()
	response.Header.Set(fiber.HeaderETag, `"`+p.token+`"`)
	response.Header.Set(fiber.HeaderCacheControl, "private, max-age=31536000, immutable")
	response.Header.Set(fiber.HeaderContentSecurityPolicy, "default-src 'none'; sandbox")
	response.Header.Set(fiber.HeaderContentDisposition, `inline; filename="avatar`+extensions[p.mediaType]+`"`)
	if known {
		response.SetStatusCode(http.StatusNotModified)
		return nil
	}
	response.Header.SetContentType(p.mediaType)
	response.SetBody(p.content)
	return nil
}

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

// decodeLimit bounds how many pictures are decoded at the same time: as many as there are cores, shared fairly among callers,
// and with no more pixels in total than the largest picture. A decoder takes up to 16 bytes for a pixel, so this bounds memory.
type decodeLimit struct {
	queue  *sandbox.Queue
	pixels int64 // in all
	free   *semaphore.Weighted
}

const (
	maxWait   = 10 * time.Second // a picture of the largest size takes two seconds
	retryDraw = 2 * time.Second
)

func newDecodeLimit(pixels int64) *decodeLimit {
	return &decodeLimit{queue: sandbox.NewQueue(runtime.GOMAXPROCS(0), maxWait, 1), pixels: pixels, free: semaphore.NewWeighted(pixels)}
}

// acquire waits until a picture of a caller may be decoded. Call release when done. It returns apierr.Unavailable if too many
// callers wait, or after maxWait.
func (l *decodeLimit) acquire(ctx context.Context, caller string, pixels int64) (release func(), err error) {
	ctx, cancel := context.WithTimeout(ctx, maxWait)
	defer cancel()
	releaseQueue, err := l.queue.Acquire(ctx, caller, 1)
	if err != nil {
		return nil, unavailable(err)
	}
	taken := min(pixels, l.pixels)
	if err := l.free.Acquire(ctx, taken); err != nil {
		releaseQueue()
		return nil, unavailable(err)
	}
	return func() {
		l.free.Release(taken)
		releaseQueue()
	}, nil
}
