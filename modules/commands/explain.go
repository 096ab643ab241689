package commands

import (
	"errors"
	"fmt"
	"strings"

	"kontor/locales"
	"kontor/server/apierr"
)

// explain renders an error for the operator as one line. An API error gets its English text, the errors of its fields and,
// unlike for clients, its cause.
func explain(err error) string {
	return strings.Join(strings.Fields(explainAPIError(err)), " ")
}

func explainAPIError(err error) string {
	if _, kind := errors.AsType[apierr.Kind](err); !kind {
		if _, is := errors.AsType[*apierr.Error](err); !is {
			return err.Error()
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
	if f.Cause != nil && f.Cause.Error() != f.Code { // a bare kind is its own cause
		fmt.Fprintf(&b, " (%v)", f.Cause)
	}
	return b.String()
}
