package screening

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"os"
	"strings"
	"time"

	"kontor/modules/duty/screening/lists"
	"kontor/modules/kit/upload"
	"kontor/modules/kit/validate"
	"kontor/server/apierr"
	"kontor/server/endpoint"
)

const (
	nameMember = "name"

	// maxUpload is the largest file of a request.
	maxUpload    = 512 << 20
	maxNameBytes = 4 * maxName
)

// uploaded is a form with a list.
type uploaded struct {
	name string
	file *os.File // nil: none
	size int64
	sum  string
}

// upload loads the list in a form. One upload at a time is received on a node: each needs room for a file.
func (s *Service) upload(ctx context.Context, r *endpoint.Request) (List, error) {
	select {
	case s.loading <- struct{}{}:
		defer func() { <-s.loading }()
	default:
		return List{}, apierr.TooManyAtOnce.RetryAfter(10 * time.Second)
	}
	u, err := receive(r)
	defer u.close()
	if err != nil {
		return List{}, err
	}
	f, err := u.list()
	if err != nil {
		return List{}, err
	}
	return s.Load(ctx, f)
}

// receive reads the members of a form, the file into a temporary one.
func receive(r *endpoint.Request) (*uploaded, error) {
	u := &uploaded{}
	form, err := upload.FormOf(r)
	if err != nil || form == nil { // A request without a body has no form.
		return u, err
	}
	for {
		part, err := form.Next()
		switch {
		case errors.Is(err, io.EOF):
			return u, nil
		case err != nil:
			return u, err
		case part.Name() == upload.FileMember:
			err = u.keep(part)
		case part.Name() == nameMember:
			err = u.read(part)
		}
		if err != nil {
			return u, err
		}
	}
}

// read reads the name of the list.
func (u *uploaded) read(part io.Reader) error {
	text, err := io.ReadAll(io.LimitReader(part, maxNameBytes+1))
	if err != nil {
		return err
	}
	if len(text) > maxNameBytes {
		return apierr.Invalid(nameMember, "invalid.max_length", apierr.Args{"Max": maxName})
	}
	u.name = string(text)
	return nil
}

// keep copies the file to a temporary one.
func (u *uploaded) keep(part io.Reader) error {
	if u.file != nil {
		return apierr.Invalid(upload.FileMember, "files.one_file")
	}
	var err error
	if u.file, err = os.CreateTemp("", "kontor-list-*"); err != nil {
		return err
	}
	hash := sha256.New()
	u.size, err = io.Copy(failing{io.MultiWriter(u.file, hash)}, io.LimitReader(part, maxUpload+1))
	if own, ok := errors.AsType[writeError](err); ok {
		return own.cause
	}
	if err != nil {
		return err
	}
	if u.size > maxUpload {
		return apierr.PayloadTooLarge.With(apierr.Args{"Max": maxUpload})
	}
	u.sum = hex.EncodeToString(hash.Sum(nil))
	return nil
}

// writeError is an error of the temporary file, and not of the request.
type writeError struct{ cause error }

// Error returns the text of the cause.
func (e writeError) Error() string { return e.cause.Error() }

// failing marks the errors of a writer.
type failing struct{ io.Writer }

// Write writes, and returns errors as writeError.
func (f failing) Write(p []byte) (int, error) {
	n, err := f.Writer.Write(p)
	if err != nil {
		err = writeError{err}
	}
	return n, err
}

// list returns the list in a form, or what is wrong with the form.
func (u *uploaded) list() (File, error) {
	var v apierr.Fields
	name := ListName(&v, u.name)
	if u.file == nil || u.size == 0 {
		v.Add(upload.FileMember, "invalid.required")
	}
	return File{Name: name, Size: u.size, SHA256: u.sum, Read: func(add func(lists.Entry) error) (lists.Info, error) {
		return lists.Read(u.file, u.size, add)
	}}, v.Err()
}

// ListName checks the name of a list.
func ListName(v *apierr.Fields, name string) string {
	return validate.Required(v, nameMember, strings.TrimSpace(name), maxName)
}

func (u *uploaded) close() {
	if u.file != nil {
		_ = u.file.Close() // it was only read
		_ = os.Remove(u.file.Name())
	}
}
