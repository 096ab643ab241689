package files

import (
	"bytes"
	"encoding/base64"
	"errors"
	"io"
	"mime"
	"mime/multipart"
	"slices"
	"strings"

	"github.com/gofiber/fiber/v2"

	"kontor/server/apierr"
	"kontor/server/endpoint"
)

const (
	formMedia = "multipart/form-data"
	anyMedia  = "application/octet-stream"

	fileMember = "file" // the member of the form that is the file
	maxParts   = 16     // members before the file

	// formOverhead is the size of boundaries and headers that is allowed in addition to the file.
	formOverhead = 64 << 10
)

// media are the types that an upload may state. A form comes first; the others are the file itself. The type that a client
// states for the file has no effect.
var media = []string{formMedia, mediaPDF, mediaJPEG, mediaPNG, anyMedia}

// incoming is a file in a request.
type incoming struct {
	content  io.Reader
	declared int64 // an upper bound of its size; negative: unknown
	body     io.Reader
	form     *multipart.Reader // nil for a file without a form
	part     *multipart.Part
	header   string   // Content-Disposition of the request
	digests  []string // Content-Digest and Repr-Digest of the request
}

// open finds the file in a request. It reads a form up to its file.
func open(r *endpoint.Request, limit int64) (incoming, error) {
	header := &r.Fiber.Request().Header
	in := incoming{content: r.Body, body: r.Body, declared: int64(header.ContentLength()), header: string(header.Peek(fiber.HeaderContentDisposition))}
	kind, parameters, err := mime.ParseMediaType(string(header.ContentType()))
	if err != nil || kind != formMedia {
		for _, name := range []string{"Content-Digest", "Repr-Digest"} {
			in.digests = append(in.digests, string(bytes.Join(header.PeekAll(name), []byte(","))))
		}
		if in.declared > limit {
			err = apierr.PayloadTooLarge.With(apierr.Args{"Max": limit})
			return in, err
		}
		return in, nil
	}
	if parameters["boundary"] == "" {
		return in, apierr.Invalid(fileMember, "files.invalid_multipart")
	}
	in.form = multipart.NewReader(r.Body, parameters["boundary"])
	for range maxParts {
		part, err := in.form.NextPart()
		switch {
		case errors.Is(err, io.EOF):
			return in, apierr.Invalid(fileMember, "invalid.required")
		case err != nil:
			return in, formError(err)
		case part.FormName() == fileMember:
			in.part, in.content = part, formReader{part}
			return in, nil
		}
	}
	return in, apierr.Invalid(fileMember, "files.invalid_multipart")
}

// formReader reads a member of a form.
type formReader struct{ io.Reader }

// Read returns errors of the form as those of the API.
func (f formReader) Read(p []byte) (int, error) {
	n, err := f.Reader.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		err = formError(err)
	}
	return n, err
}

// formError returns the error of the body behind an error of the form, or says that the form is none.
func formError(err error) error {
	if failure, ok := errors.AsType[*apierr.Error](err); ok {
		return failure
	}
	return apierr.Invalid(fileMember, "files.invalid_multipart")
}

// name returns the name that the client states. It must be cleaned.
func (in incoming) name() string {
	if in.part != nil {
		return nameIn(in.part.Header.Get("Content-Disposition"))
	}
	return nameIn(in.header)
}

// nameIn returns the name in a header Content-Disposition (RFC 6266), also of a client that writes it carelessly.
func nameIn(header string) string {
	_, parameters, err := mime.ParseMediaType(header)
	if err != nil {
		return ""
	}
	return parameters["filename"]
}

// complete checks what follows the file, and the digest in the headers (RFC 9530).
func (in incoming) complete(sum []byte) error {
	if in.form != nil {
		for range maxParts {
			part, err := in.form.NextPart()
			if errors.Is(err, io.EOF) {
				_, err = io.Copy(io.Discard, in.body)
				return err
			}
			if err != nil {
				return formError(err)
			}
			if part.FormName() == fileMember {
				return apierr.Invalid(fileMember, "files.one_file")
			}
		}
		return apierr.Invalid(fileMember, "files.invalid_multipart")
	}
	for _, header := range in.digests {
		for member := range strings.SplitSeq(header, ",") {
			value, found := strings.CutPrefix(strings.TrimSpace(member), "sha-256=:")
			if !found {
				continue
			}
			want, err := base64.StdEncoding.DecodeString(strings.TrimSuffix(value, ":"))
			if err != nil || !slices.Equal(want, sum) {
				return invalid("files.digest_mismatch")
			}
		}
	}
	return nil
}
