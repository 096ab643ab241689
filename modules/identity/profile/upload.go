package profile

import (
	"bytes"
	"errors"
	"io"
	"mime"
	"mime/multipart"

	"kontor/server/apierr"
)

// multipartMedia is the media type of an upload.
const multipartMedia = "multipart/form-data"

const (
	fileMember = "file" // name of the only member that is read
	maxParts   = 16     // maximum number of members

	// multipartOverhead is the size of boundaries and headers that is allowed in addition to the file.
	multipartOverhead = 64 << 10
)

// filePart returns the file in a multipart body. It returns apierr.InvalidInput if there is none or more than one, and
// apierr.PayloadTooLarge for a file of more than limit bytes. It ignores the name and type that the client states.
func filePart(contentType string, body []byte, limit int64) ([]byte, error) {
	if len(body) == 0 {
		return nil, apierr.Invalid(fileMember, "invalid.required")
	}
	_, params, err := mime.ParseMediaType(contentType)
	if err != nil || params["boundary"] == "" {
		return nil, apierr.Invalid(fileMember, "profile.invalid_multipart")
	}
	reader := multipart.NewReader(bytes.NewReader(body), params["boundary"])
	var file []byte
	found := false
	for range maxParts {
		part, err := reader.NextPart()
		switch {
		case errors.Is(err, io.EOF) && len(file) == 0:
			return nil, apierr.Invalid(fileMember, "invalid.required")
		case errors.Is(err, io.EOF):
			return file, nil
		case err != nil:
			return nil, apierr.Invalid(fileMember, "profile.invalid_multipart")
		case part.FormName() != fileMember:
			continue
		case found:
			return nil, apierr.Invalid(fileMember, "profile.one_file")
		}
		found = true
		if file, err = io.ReadAll(io.LimitReader(part, limit+1)); err != nil {
			return nil, apierr.Invalid(fileMember, "profile.invalid_multipart")
		}
		if int64(len(file)) > limit {
			return nil, apierr.PayloadTooLarge.With(apierr.Args{"Max": limit})
		}
	}
	return nil, apierr.Invalid(fileMember, "profile.invalid_multipart")
}
