package profile

import (
	"bytes"
	"errors"
	"io"
	"mime"
	"mime/multipart"

	"kontor/server/apierr"
)

// multipartMedia is the type of body that an upload has.
const multipartMedia = "multipart/form-data"

const (
	fileMember = "file" // name of the one member that counts
	maxParts   = 16     // members that are passed over before it is too many

	// multipartOverhead is room for boundaries and headers around a file of the largest size.
	multipartOverhead = 64 << 10
)

// filePart finds the one file in a multipart body. It returns apierr.InvalidInput where there is none or more than one,
// and apierr.PayloadTooLarge for a file of more than limit bytes. What the client calls it, and of what type it says it
// is, does not count.
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
