package commands

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"syscall"

	"kontor/locales"
	"kontor/server/apierr"
	"kontor/store"
)

// explain renders an error for the operator as one line. An API error gets its English text, the errors of its fields and,
// unlike for clients, its cause.
func explain(err error) string {
	return strings.Join(strings.Fields(explainAPIError(err)), " ")
}

func explainAPIError(err error) string {
	if _, kind := errors.AsType[apierr.Kind](err); !kind {
		if _, is := errors.AsType[*apierr.Error](err); !is {
			return plainError(err)
		}
	}
	f := apierr.Of(err)
	texts, loadErr := locales.Load()
	if loadErr != nil {
		return err.Error()
	}
	var b strings.Builder
	b.WriteString(texts.Text(locales.Default, "error."+f.Code, f.Args))
	for field, text := range f.Fields.All {
		fmt.Fprintf(&b, " %s: %s", field, texts.Text(locales.Default, text.Key, text.Args))
	}
	// A bare kind is its own cause. The text of a kind for duplicates says all that the database reports.
	if f.Cause != nil && f.Cause.Error() != f.Code && !errors.Is(f.Cause, store.ErrDuplicate) {
		fmt.Fprintf(&b, " (%s)", plainError(f.Cause))
	}
	return b.String()
}

// causes are the texts of the operating system and of the libraries that people would have to translate.
var causes = strings.NewReplacer(
	io.ErrUnexpectedEOF.Error(), "the file is incomplete: it ends too early; use a complete copy",
	": "+io.EOF.Error(), ": the input is empty",
)

// plainError returns the text of an error, with sentences in place of raw causes.
func plainError(err error) string {
	text := err.Error()
	if p, ok := errors.AsType[*fs.PathError](err); ok {
		text = strings.Replace(text, p.Error(), describePath(p), 1)
	}
	if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
		text = causes.Replace(text)
	}
	return text
}

func describePath(p *fs.PathError) string {
	switch {
	case errors.Is(p, fs.ErrExist):
		return p.Path + " exists already; name a new file"
	case errors.Is(p, fs.ErrNotExist) && p.Op == "open":
		return p.Path + " does not exist, or its directory does not; check the path"
	case errors.Is(p, fs.ErrPermission):
		return "this user may not use " + p.Path + "; check its owner and mode"
	case errors.Is(p, syscall.EISDIR):
		return p.Path + " is a directory; name a file"
	}
	return p.Error()
}
