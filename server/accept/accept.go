// Package accept selects among forms of an answer by the headers Accept and Accept-Encoding (RFC 9110, section 12.5).
package accept

import (
	"strconv"
	"strings"
)

// Choice is the form that a client prefers.
type Choice struct {
	Value      string            // one of those offered; empty: none is acceptable
	Parameters map[string]string // that the client named beside it, in lower case, without the weight
}

// Best returns the media type with the highest weight; among equals the first. A type without a range of its own has the weight
// of type/* or */*.
func Best(header string, offered ...string) Choice {
	var best Choice
	top := 0.0
	for _, value := range offered {
		weight, parameters := weightOf(header, value)
		if weight > top {
			best, top = Choice{value, parameters}, weight
		}
	}
	return best
}

// weightOf returns the weight of a media type by the most specific range that matches it.
func weightOf(header, value string) (weight float64, parameters map[string]string) {
	kind, _, _ := strings.Cut(value, "/")
	precision := 0
	for part := range strings.SplitSeq(header, ",") {
		name, rest, _ := strings.Cut(part, ";")
		at := 0
		switch strings.ToLower(strings.TrimSpace(name)) {
		case value:
			at = 3
		case kind + "/*":
			at = 2
		case "*/*":
			at = 1
		}
		if at > precision {
			precision = at
			weight, parameters = readParameters(rest)
		}
	}
	return weight, parameters
}

// readParameters returns the weight and the other parameters of an entry. An invalid weight excludes the entry.
func readParameters(text string) (weight float64, parameters map[string]string) {
	weight = 1
	for part := range strings.SplitSeq(text, ";") {
		name, value, _ := strings.Cut(part, "=")
		name, value = strings.ToLower(strings.TrimSpace(name)), strings.ToLower(strings.Trim(strings.TrimSpace(value), `"`))
		switch {
		case name == "q":
			weight = parseWeight(value)
		case name != "":
			if parameters == nil {
				parameters = map[string]string{}
			}
			parameters[name] = value
		}
	}
	return weight, parameters
}

func parseWeight(text string) float64 {
	weight, err := strconv.ParseFloat(text, 64)
	if err != nil || !(weight >= 0 && weight <= 1) {
		return 0
	}
	return weight
}

// The content codings that the program names itself. Identity changes nothing.
const (
	Identity = "identity"
	Gzip     = "gzip"
)

// Coding returns the content coding with the highest weight in Accept-Encoding; among equals the first. Codings that the header
// does not name have the weight of *. It returns [Identity] if that has a higher weight than all offered ones, or if none of
// them is acceptable. forced reports that the client does not accept Identity.
func Coding(header string, offered ...string) (coding string, forced bool) {
	weights := map[string]float64{}
	for part := range strings.SplitSeq(header, ",") {
		name, rest, _ := strings.Cut(part, ";")
		name = strings.TrimPrefix(strings.ToLower(strings.TrimSpace(name)), "x-") // x-gzip is gzip
		if name != "" {
			weights[name], _ = readParameters(rest)
		}
	}
	other, all := weights["*"]
	identity, named := weights[Identity]
	if !named && all {
		identity = other
	}
	coding, top := Identity, max(identity, 0)
	for _, name := range offered {
		weight, named := weights[name]
		if !named {
			weight = other
		}
		if weight > top || weight > 0 && weight == top && coding == Identity {
			coding, top = name, weight
		}
	}
	return coding, identity == 0 && (named || all)
}
