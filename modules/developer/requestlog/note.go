package requestlog

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"kontor/modules/kit/types"
	"kontor/server/access"
	"kontor/server/apierr"
	"kontor/server/endpoint"
)

// Bounds of an entry: with the largest ones, 10,000 entries need less than 30 MB beside their content.
const (
	maxPath   = 512
	maxQuery  = 512
	maxFields = 10
	maxField  = 80
)

// The kinds of callers.
const (
	kindPerson    = "person"
	kindService   = "service"
	kindAPIKey    = "api_key"
	kindAnonymous = "anonymous"
)

// entry is a kept request.
type entry struct {
	seq       int64
	row       *endpoint.Endpoint // nil: no endpoint
	at        time.Time
	took      time.Duration
	status    int
	method    string
	path      string
	query     string // the names of the parameters, without values
	ignored   string // those without effect
	code      string
	reason    string   // of a 403
	fields    []string // wrong fields
	kind      string   // of the caller
	caller    string   // id of the user, service account or API key
	presented bool     // a token or key came with the request
	requestID string
	content   *content // nil: none is kept
}

// content is what is kept in a sandbox only.
type content struct{ query, request, answer string }

func (c *content) size() int {
	if c == nil {
		return 0
	}
	return len(c.query) + len(c.request) + len(c.answer)
}

// prefix begins the names of the endpoints of the module. Requests to them are not kept.
const prefix = "requests."

// erasing begins the names of the endpoints after which no content may remain.
const erasing = "privacy.erase_"

// Note keeps a request.
func (s *Service) Note(a endpoint.Answered) {
	if !s.On() || a.Row != nil && strings.HasPrefix(a.Row.Name, prefix) {
		return
	}
	if a.Row != nil && a.Status < http.StatusBadRequest && strings.HasPrefix(a.Row.Name, erasing) {
		defer s.ring.dropContent() // also what came with this request
	}
	request := a.Fiber.Request()
	e := &entry{row: a.Row, at: a.At, took: a.Took, status: a.Status, method: methodOf(a), requestID: a.RequestID, ignored: shownNames(a.Ignored)}
	e.kind, e.caller = callerOf(a.Caller)
	if e.path = pathOf(a.Row, request.URI().PathOriginal()); len(request.URI().QueryString()) > 0 {
		e.query = parameterNames(a.Fiber.Request().URI().QueryString())
	}
	if a.Refusal != nil {
		e.presented = len(request.Header.Peek("Authorization")) > 0 || len(request.Header.Peek("X-API-Key")) > 0
		e.refuse(a.Refusal)
	}
	if s.options.Bodies && a.Row != nil {
		e.content = contentOf(a)
	}
	s.ring.add(e)
}

// methodOf returns the method of a request. Methods are few, unless a client invents one.
func methodOf(a endpoint.Answered) string {
	sent := a.Fiber.Method()
	for _, known := range []string{http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodOptions} {
		if sent == known {
			return known
		}
	}
	return "other"
}

func callerOf(c *access.Caller) (kind, id string) {
	switch {
	case c == nil:
		return kindAnonymous, ""
	case c.SignedIn.Machine:
		return kindService, c.UserID
	case c.UserID != "":
		return kindPerson, c.UserID
	case c.KeyID != "":
		return kindAPIKey, c.KeyID
	}
	return kindAnonymous, ""
}

// hidden stands for a part of a path or query that is not kept.
const hidden = "…"

// maxWord is the length of the longest part of an unknown path that is kept. The addresses of avatars, which are secrets, are longer.
const maxWord = 24

// pathOf returns the path without what may be a secret or about a person. In the place of a parameter, only an id or a number is kept; the
// others show the name of the parameter. Of a path without an endpoint, only ids and short words are kept.
func pathOf(row *endpoint.Endpoint, sent []byte) string {
	if row != nil && string(sent) == row.Path { // most paths without parameters need no copy
		return row.Path
	}
	segments := strings.Split(string(sent[:min(len(sent), maxPath+1)]), "/")
	var declared []string
	if row != nil {
		declared = strings.Split(row.Path, "/")
	}
	for i, segment := range segments {
		switch {
		case isID(segment) && (row == nil || !row.SecretID):
		case i >= len(declared):
			segments[i] = word(segment)
		default:
			segments[i] = declared[i]
		}
	}
	return cut(strings.Join(segments, "/"), maxPath)
}

// isID reports whether a text is a UUID or a number.
func isID(text string) bool {
	_, err := types.ParseID(text)
	return err == nil || text != "" && strings.Trim(text, "0123456789") == ""
}

// word returns a text that may be kept of an unknown path or as the name of a parameter, or [hidden].
func word(text string) string {
	odd := strings.IndexFunc(text, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune("_-.[]", r)
	})
	if odd >= 0 || len(text) > maxWord {
		return hidden
	}
	return text
}

// shownNames returns the names of ignored parameters, which may be anything that a client sent, without those that may be a secret.
func shownNames(ignored string) string {
	if ignored == "" {
		return ""
	}
	names := strings.Split(ignored, ", ")
	for i, name := range names {
		names[i] = word(name)
	}
	return strings.Join(names, ", ")
}

// cut returns the beginning of a text as valid UTF-8.
func cut(text string, most int) string {
	if len(text) > most {
		for most > 0 && !utf8.RuneStart(text[most]) {
			most--
		}
		text = text[:most] + "…"
	}
	return strings.ToValidUTF8(text, "\uFFFD")
}

// parameterNames returns the names of the parameters of a query.
func parameterNames(query []byte) string {
	var b strings.Builder
	for part := range strings.SplitSeq(string(query[:min(len(query), 4*maxQuery)]), "&") {
		name, _, _ := strings.Cut(part, "=")
		if name, err := url.QueryUnescape(name); err == nil && name != "" {
			if b.Len() > 0 {
				b.WriteByte('&')
			}
			b.WriteString(parameterName(name))
		}
	}
	return cut(b.String(), maxQuery)
}

// parameterName returns the name of a parameter that may be kept.
func parameterName(name string) string {
	if rest, searched := strings.CutPrefix(name, "search."); searched {
		return "search." + word(rest)
	}
	return word(name)
}

// fieldName returns the name of a field that may be kept: a client may send values in the places of names.
func fieldName(name string) string {
	parts := strings.Split(name, ".")
	for i, part := range parts {
		parts[i] = word(part)
	}
	return strings.Join(parts, ".")
}

// refuse notes the error of an answer. Texts and values of the error stay behind: they may quote the input.
func (e *entry) refuse(refusal *apierr.Error) {
	e.code, e.reason = refusal.Code, refusal.Reason
	if refusal.Fields == nil {
		return
	}
	for name := range refusal.Fields.All {
		if len(e.fields) == maxFields {
			break
		}
		e.fields = append(e.fields, strings.Clone(cut(fieldName(name), maxField)))
	}
	slices.Sort(e.fields)
}
