package locales

import (
	"slices"
	"strings"
	"sync"

	"golang.org/x/text/language"
)

var matcher = language.NewMatcher([]language.Tag{language.English, language.German, language.French, language.Italian})

const (
	maxHeader     = 200  // longer Accept-Language headers are truncated: further preferences change nothing
	maxRemembered = 1000 // headers
)

var remembered struct {
	sync.RWMutex
	languages map[string]string
}

// Match returns the language for an Accept-Language header (RFC 9110, section 12.5.4). It is the supported language with
// the highest weight, or the default. Weight zero excludes a language; "*" means all languages that are not named.
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
	var wanted []language.Tag
	var weights []float32
	var others float32           // the weight of "*", for languages that are not named
	named := map[string]bool{}   // supported languages with a weight of their own
	refused := map[string]bool{} // supported languages with weight zero
	// Skip invalid preferences one by one, so that the valid ones still count.
	for preference := range strings.SplitSeq(header, ",") {
		tags, qs, err := language.ParseAcceptLanguage(preference)
		name, _, _ := strings.Cut(preference, ";")
		name = strings.ToLower(strings.TrimSpace(name))
		switch {
		case err != nil || len(tags) > 1:
			continue
		case len(tags) == 0 || qs[0] <= 0: // the parser omits languages with weight zero
			refused[name] = true
			continue
		case name == "*":
			others = qs[0]
			continue
		case tags[0] == language.Und:
			continue
		}
		named[tags[0].String()] = true
		at := len(wanted)
		for at > 0 && weights[at-1] < qs[0] {
			at--
		}
		wanted = slices.Insert(wanted, at, tags[0])
		weights = slices.Insert(weights, at, qs[0])
	}
	// Match one preference at a time: the matcher may prefer a later exact match to an earlier near one.
	for i, tag := range wanted {
		if weights[i] < others {
			break
		}
		if lang, ok := near(tag); ok {
			return lang
		}
	}
	for _, lang := range languages {
		if others > 0 && !named[lang] && !refused[lang] {
			return lang
		}
	}
	for _, tag := range wanted {
		if lang, ok := near(tag); ok {
			return lang
		}
	}
	return Default
}

// near returns the supported language closest to the tag, and whether it is close enough.
func near(tag language.Tag) (string, bool) {
	_, index, confidence := matcher.Match(tag)
	return languages[index], confidence >= language.Low
}
