package requestlog

import (
	"net/http"
	"strings"
)

// curl returns a command that repeats a request. It has no secret: the shell adds the token.
func (s *Service) curl(e entry) string {
	path := s.options.BaseURL + e.path
	if e.content != nil && e.content.query != "" {
		path += "?" + e.content.query
	}
	parts := []string{"curl -sS -X " + e.method + " " + quoted(path)}
	if e.method == http.MethodGet {
		parts[0] = "curl -sS " + quoted(path)
	}
	if e.row == nil || e.row.Access.TakesBearer() {
		parts = append(parts, `-H "Authorization: Bearer $KONTOR_TOKEN"`)
	} else if e.row.Access.TakesAPIKey() {
		parts = append(parts, `-H "X-API-Key: $KONTOR_API_KEY"`)
	}
	if e.row != nil && e.row.Handle.ReadsBody() {
		parts = append(parts, "-H "+quoted("Content-Type: "+e.row.Handle.Media[0]))
		if e.content != nil && e.content.request != "" {
			parts = append(parts, "--data "+quoted(e.content.request))
		}
	}
	return strings.Join(parts, " ")
}

// quoted returns a text as one word of a shell. It has no control characters, which could act on the terminal that shows it.
func quoted(text string) string {
	text = strings.Map(func(r rune) rune {
		if r < ' ' || r >= 0x7f && r < 0xa0 {
			return '?'
		}
		return r
	}, text)
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}
