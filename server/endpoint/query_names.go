package endpoint

import (
	"slices"
	"strings"
	"unicode/utf8"

	"kontor/server/apierr"
	"kontor/server/ratelimit"
	"kontor/server/similar"
)

const (
	searchPrefix = "search."

	// maxShownName bounds the part of an unknown name that is repeated in an answer.
	maxShownName = 80
	// maxUnknown bounds the unknown parameters of a request that are reported.
	maxUnknown = 20
)

// listNames are the parameters of a list beside its searches.
var listNames = []string{"limit", "offset", "cursor", "sort", "stack", "distinct"}

// checkNames rejects query parameters that the operation does not have: an ignored filter would return all records. An unknown
// field of a search is left to the list. Rows without a rate limit are called by probes and scrapers, which may add
// parameters.
func (p *plan) checkNames(r *Request, query map[string][]string, problems *apierr.Fields) {
	if r.Row == nil || r.Row.OpenQuery || r.Row.Limit == ratelimit.None {
		return
	}
	var unknown []string
	for name := range query {
		if !p.takes(name) && (name != "" || query[name][0] != "") {
			unknown = append(unknown, name)
		}
	}
	slices.Sort(unknown)
	for _, name := range unknown[:min(len(unknown), maxUnknown)] {
		if suggestion := p.suggest(r.Row, name); suggestion != "" {
			problems.Add(clip(name), "invalid.parameter_suggestion", apierr.Args{"Name": suggestion})
		} else {
			problems.Add(clip(name), "invalid.parameter")
		}
	}
}

func (p *plan) takes(name string) bool {
	if p.binder >= 0 && (slices.Contains(listNames, name) || strings.HasPrefix(name, searchPrefix)) {
		return true
	}
	return slices.ContainsFunc(p.query, func(f queryField) bool { return f.name == name })
}

// suggest returns the parameter that the client may mean: the search of a field with that name, or a parameter with few other
// letters.
func (p *plan) suggest(row *Endpoint, name string) string {
	var names []string
	for _, f := range p.query {
		names = append(names, f.name)
	}
	if p.binder >= 0 {
		names = append(names, listNames...)
		for _, f := range row.Doc.Search {
			names = append(names, searchPrefix+f.Name)
		}
	}
	return similar.Closest(clip(name), names, plainName)
}

var nameSeparators = strings.NewReplacer("_", "", "-", "", ".", "", "[", "", "]", "")

// plainName returns a name without the differences of spelling: lastName, last-name and search[last_name] are one.
func plainName(name string) string {
	return strings.TrimPrefix(nameSeparators.Replace(strings.ToLower(name)), "search")
}

// clip makes a name from the client safe for answers and for the log.
func clip(name string) string {
	if len(name) > maxShownName {
		name = name[:maxShownName]
	}
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == utf8.RuneError || r == 0x7f {
			return '?'
		}
		return r
	}, strings.ToValidUTF8(name, "?"))
}
