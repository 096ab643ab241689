package authzen

import (
	"encoding/base64"
	"math"
	"strconv"
	"strings"

	"kontor/server/apierr"
)

const (
	defaultLimit = 100
	maxLimit     = 1000
)

// page is a part of the results of a search: those after a key, which is the id or the name of a result.
type page struct {
	after string
	limit int
}

// tokenVersion begins the text of a token before it is encoded.
const tokenVersion = "1"

// parse reads which page is wanted.
func (in *pageInput) parse(v *apierr.Fields) page {
	p := page{limit: defaultLimit}
	if in.Token != "" {
		var ok bool
		if p, ok = parseToken(in.Token); !ok {
			v.Add("page.token", "invalid.page_token")
			return p
		}
	}
	if in.Limit == nil {
		return p
	}
	if *in.Limit < 0 || *in.Limit != math.Trunc(*in.Limit) {
		v.Add("page.limit", "invalid.range", apierr.Args{"Min": 0, "Max": maxLimit})
		return p
	}
	p.limit = int(min(*in.Limit, maxLimit))
	return p
}

// token returns the token of the page. It is no secret and gives no right: the search decides again what the caller may see.
func (p page) token() string {
	return base64.RawURLEncoding.EncodeToString([]byte(tokenVersion + " " + strconv.Itoa(p.limit) + " " + p.after))
}

func parseToken(token string) (page, bool) {
	const maxToken = 2000
	if len(token) > maxToken {
		return page{}, false
	}
	text, err := base64.RawURLEncoding.Strict().DecodeString(token)
	version, rest, _ := strings.Cut(string(text), " ")
	number, after, ok := strings.Cut(rest, " ")
	limit, wrong := strconv.Atoi(number)
	if err != nil || wrong != nil || !ok || version != tokenVersion || limit < 0 || limit > maxLimit {
		return page{}, false
	}
	return page{after: after, limit: limit}, true
}

// cut returns the results of a page, of which one more than its limit were read, and the page's description.
func cut[T any](p page, found []T, key func(T) string) ([]T, pageOutput) {
	if len(found) <= p.limit {
		return found, pageOutput{Count: len(found)}
	}
	found = found[:p.limit]
	next := p
	if p.limit > 0 {
		next.after = key(found[p.limit-1])
	}
	return found, pageOutput{NextToken: next.token(), Count: len(found)}
}
