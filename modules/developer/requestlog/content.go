package requestlog

import (
	"bytes"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"kontor/server/endpoint"
)

const (
	// maxBody bounds what is kept of a body, and maxRead the bodies that are read for it.
	maxBody = 4 << 10
	maxRead = 64 << 10
)

// shown are the beginnings of the names of the endpoints whose bodies are kept. No other endpoint is: those of sign-in, accounts,
// factors, keys, webhooks and messages receive or return secrets.
var shown = []string{"customers.", "personas.", "payers.", "tasks.", "chats.", "inbox.", "search.", "rbac.", "screening.", "events."}

// secretWords are parts of the names of members whose values are masked.
var secretWords = []string{"password", "passphrase", "secret", "token", "otp", "key", "credential", "code", "signature"}

// harmless are names that contain such a part.
var harmless = []string{"postal_code", "country_code"}

const mask = "***"

// contentOf returns what is kept of a request and its answer, or nil.
func contentOf(a endpoint.Answered) *content {
	if !keepsContent(a.Row) {
		return nil
	}
	c := &content{}
	request, answer := a.Fiber.Request(), a.Fiber.Response()
	if query := request.URI().QueryString(); len(query) > 0 && len(query) <= maxBody {
		c.query = maskQuery(string(query))
	}
	if a.Row.Handle.In != nil && !request.IsBodyStream() {
		c.request = maskBody(request.Body(), false)
	}
	if a.Row.Handle.Out != nil && !answer.IsBodyStream() && len(answer.Header.Peek("Content-Encoding")) == 0 && !a.Fiber.Context().Hijacked() {
		c.answer = maskBody(answer.Body(), a.Status >= http.StatusBadRequest)
	}
	if c.size() == 0 {
		return nil
	}
	return c
}

// keepsContent reports whether the bodies of a row are kept.
func keepsContent(row *endpoint.Endpoint) bool {
	if row.Access.IsPublic() || !row.Access.TakesBearer() || row.Assurance != endpoint.AnySession && row.Assurance.Condition() == "" {
		return false
	}
	return slices.ContainsFunc(shown, func(beginning string) bool { return strings.HasPrefix(row.Name, beginning) })
}

// isSecret reports whether the value of a member or parameter is masked.
func isSecret(name string) bool {
	name = strings.ToLower(name)
	return !slices.Contains(harmless, name) && slices.ContainsFunc(secretWords, func(word string) bool { return strings.Contains(name, word) })
}

func maskQuery(query string) string {
	values, err := url.ParseQuery(query)
	if err != nil {
		return ""
	}
	for name := range values {
		if isSecret(name) {
			values[name] = []string{mask}
		}
	}
	return values.Encode()
}

// maskBody returns a JSON body with masked secrets, and nothing for any other body. A long one is cut. The code of an error is no secret.
func maskBody(body []byte, isError bool) string {
	if len(body) == 0 || len(body) > maxRead {
		return ""
	}
	if isHarmless(body) && jsontext.Value(body).IsValid() {
		return cut(string(body), maxBody)
	}
	var b bytes.Buffer
	in, out := jsontext.NewDecoder(bytes.NewReader(body)), jsontext.NewEncoder(&b)
	hide := false
	for out.StackDepth() > 0 || b.Len() == 0 {
		kind, name := in.PeekKind(), false
		if in.StackDepth() > 0 {
			container, n := in.StackIndex(in.StackDepth())
			name = container == '{' && n%2 == 0 && kind == '"'
		}
		if hide {
			if in.SkipValue() != nil || out.WriteToken(jsontext.String(mask)) != nil {
				return ""
			}
			hide = false
			continue
		}
		token, err := in.ReadToken()
		if err != nil {
			return ""
		}
		if name {
			hide = isSecret(token.String()) && !(isError && in.StackDepth() == 1 && token.String() == "code")
		}
		if out.WriteToken(token) != nil {
			return ""
		}
	}
	return cut(strings.TrimSuffix(b.String(), "\n"), maxBody)
}

// isHarmless reports whether a JSON body has no member whose value is masked, and no line break. Most answers are, and need not be
// written again, which takes longer than the request. A name with an escape sequence is none.
func isHarmless(body []byte) bool {
	for at := 0; at < len(body); at++ {
		if body[at] < ' ' {
			return false
		}
		if body[at] != '"' {
			continue
		}
		begin := at + 1
		for at++; at < len(body) && body[at] != '"'; at++ {
			if body[at] == '\\' {
				at++
			}
		}
		end := min(at, len(body))
		rest := bytes.TrimLeft(body[min(at+1, len(body)):], " \t\r\n")
		if name := body[begin:end]; len(rest) > 0 && rest[0] == ':' && (bytes.ContainsRune(name, '\\') || isSecret(string(name))) {
			return false
		}
	}
	return true
}
