package web

import (
	"strconv"
	"strings"
)

// TakesGzip reports whether Accept-Encoding selects the compressed form of an answer (RFC 9110, section 12.5.3). It does if
// gzip, or else *, has a weight above 0 that is not below the weight of identity.
func TakesGzip(header string) bool {
	weights := map[string]float64{}
	for part := range strings.SplitSeq(header, ",") {
		coding, parameter, _ := strings.Cut(part, ";")
		coding = strings.ToLower(strings.TrimSpace(coding))
		if coding == "x-gzip" {
			coding = "gzip"
		}
		if coding != "" {
			weights[coding] = weight(parameter)
		}
	}
	gzip, named := weights["gzip"]
	if !named {
		gzip = weights["*"]
	}
	return gzip > 0 && gzip >= weights["identity"] // An absent identity is acceptable but not preferred.
}

// weight parses a quality value. An invalid value excludes its coding, because the plain form is always acceptable.
func weight(parameter string) float64 {
	parameter = strings.ToLower(strings.TrimSpace(parameter))
	if parameter == "" {
		return 1
	}
	text, ok := strings.CutPrefix(parameter, "q=")
	value, err := strconv.ParseFloat(text, 64)
	if !ok || err != nil || !(value >= 0 && value <= 1) {
		return 0
	}
	return value
}
