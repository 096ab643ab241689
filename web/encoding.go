package web

import (
	"strconv"
	"strings"
)

// TakesGzip reads Accept-Encoding for an answer that exists compressed and plain (RFC 9110, section 12.5.3). The compressed
// one is sent when gzip, or else *, is named with a weight above 0 that is not below the weight of identity.
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
	return gzip > 0 && gzip >= weights["identity"] // which is acceptable, but not preferred, where it is not named
}

// weight reads a quality value. One that cannot be read refuses its coding: plain is always understood.
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
