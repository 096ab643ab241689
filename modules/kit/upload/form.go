// Package upload has what endpoints share that receive files: the members of a form, which are read while they arrive, and the encrypted
// chunks in which files are stored.
package upload

import (
	"errors"
	"io"
	"mime"
	"mime/multipart"

	"kontor/server/apierr"
	"kontor/server/endpoint"
)

const (
	// FormMedia is the media type of forms with files (RFC 7578).
	FormMedia = "multipart/form-data"
	// FileMember is the member of a form that is the file.
	FileMember = "file"
	// FormOverhead is the size of boundaries and headers that an endpoint allows in addition to the file, in bytes.
	FormOverhead = 64 << 10

	maxParts = 16 // members before the file, and after it

	// maxPartHead is the size of what may come between two members: a boundary and the headers of a member, with the name of its file.
	maxPartHead = 16 << 10
)

// Form is a form of which the members have not arrived yet.
type Form struct {
	reader *multipart.Reader
	body   *boundedHeads
	left   int // members that may still come
	part   *multipart.Part
}

// boundedHeads bounds the heads of members while they are read: the library holds a whole one in memory.
type boundedHeads struct {
	io.Reader
	inHead bool
	left   int // of the head
}

// Read returns an error when the head is too long.
func (b *boundedHeads) Read(p []byte) (int, error) {
	if !b.inHead {
		return b.Reader.Read(p)
	}
	if b.left <= 0 {
		return 0, errMalformed()
	}
	n, err := b.Reader.Read(p[:min(len(p), b.left)])
	b.left -= n
	return n, err
}

// nextPart reads to the content of the next member.
func (f *Form) nextPart() (*multipart.Part, error) {
	if f.part != nil {
		if _, err := io.Copy(io.Discard, f.part); err != nil { // the rest of its content is no head
			return nil, err
		}
	}
	f.body.inHead, f.body.left = true, maxPartHead
	defer func() { f.body.inHead = false }()
	var err error
	f.part, err = f.reader.NextPart()
	return f.part, err
}

// FormOf returns the form of a request, or nil if the body has another media type. It returns apierr.InvalidInput for a form without
// a boundary.
func FormOf(r *endpoint.Request) (*Form, error) {
	return NewForm(string(r.Fiber.Request().Header.ContentType()), r.Body)
}

// NewForm is like [FormOf] for a body with a media type.
func NewForm(contentType string, body io.Reader) (*Form, error) {
	kind, parameters, err := mime.ParseMediaType(contentType)
	switch {
	case err != nil || kind != FormMedia:
		return nil, nil //nolint:nilerr,nilnil // the server has checked the type
	case parameters["boundary"] == "":
		return nil, errMalformed()
	}
	bounded := &boundedHeads{Reader: body}
	return &Form{reader: multipart.NewReader(bounded, parameters["boundary"]), body: bounded, left: maxParts}, nil
}

func errMalformed() error { return apierr.Invalid(FileMember, "files.invalid_multipart") }

// formError returns the error of the body behind an error of the form, or says that the form is none.
func formError(err error) error {
	if failure, ok := errors.AsType[*apierr.Error](err); ok {
		return failure
	}
	return errMalformed()
}

// Part is a member of a form.
type Part struct{ part *multipart.Part }

// Name returns the name of the member.
func (p Part) Name() string { return p.part.FormName() }

// FileName returns the name of the file that the client states. It must be cleaned.
func (p Part) FileName() string { return FileNameIn(p.part.Header.Get("Content-Disposition")) }

// FileNameIn returns the name in a header Content-Disposition (RFC 6266), also of a client that writes it carelessly.
func FileNameIn(header string) string {
	_, parameters, err := mime.ParseMediaType(header)
	if err != nil {
		return ""
	}
	return parameters["filename"]
}

// Read returns errors of the form as those of the API.
func (p Part) Read(b []byte) (int, error) {
	n, err := p.part.Read(b)
	if err != nil && !errors.Is(err, io.EOF) {
		err = formError(err)
	}
	return n, err
}

// Next returns the next member, or io.EOF when the body has ended. It returns apierr.InvalidInput for a form with too many members.
func (f *Form) Next() (Part, error) {
	if f.left == 0 {
		return Part{}, errMalformed()
	}
	f.left--
	part, err := f.nextPart()
	switch {
	case errors.Is(err, io.EOF):
		if _, err := io.Copy(io.Discard, f.body); err != nil {
			return Part{}, err
		}
		return Part{}, io.EOF
	case err != nil:
		return Part{}, formError(err)
	}
	return Part{part}, nil
}

// File returns the member that is the file. It returns apierr.InvalidInput if there is none.
func (f *Form) File() (Part, error) {
	for {
		part, err := f.Next()
		if errors.Is(err, io.EOF) {
			return part, apierr.Invalid(FileMember, "invalid.required")
		}
		if err != nil || part.Name() == FileMember {
			f.left = maxParts
			return part, err
		}
	}
}

// End reads what follows the file. It returns apierr.InvalidInput for a second file.
func (f *Form) End() error {
	for {
		part, err := f.Next()
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		case part.Name() == FileMember:
			return apierr.Invalid(FileMember, "files.one_file")
		}
	}
}
