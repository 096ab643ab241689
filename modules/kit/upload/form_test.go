package upload_test

import (
	"errors"
	"io"
	"strings"
	"testing"

	"kontor/modules/kit/upload"
	"kontor/server/apierr"
)

// metered counts what is read of a body.
type metered struct {
	io.Reader
	read int
}

func (m *metered) Read(p []byte) (int, error) {
	n, err := m.Reader.Read(p)
	m.read += n
	return n, err
}

// readAll reads a form to its end, and returns the file and its name.
func readAll(body io.Reader) (name, content string, err error) {
	form, err := upload.NewForm(upload.FormMedia+"; boundary=b", body)
	if err != nil {
		return "", "", err
	}
	file, err := form.File()
	if err != nil {
		return "", "", err
	}
	text, err := io.ReadAll(file)
	if err == nil {
		err = form.End()
	}
	return file.FileName(), string(text), err
}

func part(head, content string) string { return "--b\r\n" + head + "\r\n\r\n" + content + "\r\n" }

const disposition = `Content-Disposition: form-data; name="file"; filename="`

func TestForm_BoundsHeadsWhileItReadsThem(t *testing.T) {
	long := strings.Repeat("x", 9<<20)
	for name, body := range map[string]string{
		"a long file name":        part(disposition+long+`"`, "content"),
		"a long name":             part(`Content-Disposition: form-data; name="`+long+`"`, "content"),
		"a long header":           part(disposition+"a\"\r\nX: "+long, "content"),
		"many headers":            part(disposition+`a"`+strings.Repeat("\r\nX: y", 1<<20), "content"),
		"many parts of a name":    part(disposition+`a"`+strings.Repeat(`; filename*0="a"`, 1<<19), "content"),
		"a long text before":      long + "\r\n" + part(disposition+`a"`, "content") + "--b--",
		"many lines before":       strings.Repeat("x\r\n", 1<<20) + part(disposition+`a"`, "content") + "--b--",
		"a long head after it":    part(disposition+`a"`, "content") + part(`Content-Disposition: form-data; name="`+long+`"`, "more"),
		"a boundary without end":  "--b" + strings.Repeat(" ", 9<<20),
		"a head after large part": part(`Content-Disposition: form-data; name="x"`, strings.Repeat("y", 1<<20)) + part(disposition+long+`"`, "content"),
	} {
		m := &metered{Reader: strings.NewReader(body)}
		_, _, err := readAll(m)
		if !errors.Is(err, apierr.InvalidInput) {
			t.Errorf("%s: got %v", name, err)
		}
		if m.read > 2<<20 {
			t.Errorf("%s: %d bytes were read", name, m.read)
		}
	}
}

func TestForm_ReadsLargePartsBetweenHeads(t *testing.T) {
	large, name := strings.Repeat("y", 3<<20), strings.Repeat("n", 10_000)
	other := part(`Content-Disposition: form-data; name="x"`, large)
	got, content, err := readAll(strings.NewReader(other + other + part(disposition+name+`"`, large) + other + "--b--\r\n" + large))
	if err != nil || got != name || content != large {
		t.Errorf("got a name of %d and a content of %d bytes, %v", len(got), len(content), err)
	}
}
