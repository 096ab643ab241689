package locales

import (
	"strings"
	"sync"

	"golang.org/x/text/language"
)

var matcher = language.NewMatcher([]language.Tag{language.English, language.German, language.French, language.Italian})

const (
	maxHeader     = 200  // an Accept-Language beyond this is cut: more preferences than that choose nothing new
	maxRemembered = 1000 // headers
)

var remembered struct {
	sync.RWMutex
	languages map[string]string
}

// Match chooses the language for an Accept-Language header (RFC 9110, section 12.5.4): the one with the highest weight
// that we have, the default where there is none. Weight zero means "not this one".
func Match(header string) string {
	if header == "" {
		return Default
	}
	if len(header) > maxHeader {
		header = header[:maxHeader]
		header = header[:max(0, strings.LastIndexByte(header, ','))]
	}
	remembered.RLock()
	lang, ok := remembered.languages[header]
	remembered.RUnlock()
	if ok {
		return lang
	}
	lang = match(header)
	remembered.Lock()
	defer remembered.Unlock()
	if remembered.languages == nil || len(remembered.languages) >= maxRemembered {
		remembered.languages = map[string]string{}
	}
	remembered.languages[strings.Clone(header)] = lang
	return lang
}

func match(header string) string {
	// Broken preferences are passed over one by one, so that they do not spoil the good ones beside them.
	var wanted []language.Tag
	var weights []float32
	for preference := range strings.SplitSeq(header, ",") {
		tags, qs, err := language.ParseAcceptLanguage(preference)
		if err != nil || len(tags) != 1 || qs[0] <= 0 || tags[0] == language.Und {
			continue
		}
		at := len(wanted)
		for at > 0 && weights[at-1] < qs[0] {
			at--
		}
		wanted = append(wanted[:at], append([]language.Tag{tags[0]}, wanted[at:]...)...)
		weights = append(weights[:at], append([]float32{qs[0]}, weights[at:]...)...)
	}
	// One preference after the other: the matcher itself may prefer a later exact match to an earlier near one.
	for _, tag := range wanted {
		if _, index, confidence := matcher.Match(tag); confidence >= language.Low {
			return languages[index]
		}
	}
	return Default
}
