// Package names compares names of people and organisations that were written by different hands: in another order, alphabet or
// spelling, with or without titles, patronymics and organisation types.
//
// [Compare] takes two names and returns a score from 0 to 1 with the evidence: which parts matched which, and how. [Index] finds the
// names of a list that score at least a threshold, and weighs parts by how rare they are in the list. [Signals] lower a score by a
// birth date or a country that contradicts.
//
// Scores are no probabilities. Parts are compared as Latin letters, in all readings that the package latin has for the script, and as the
// letters that they look like. Arabic and Hebrew omit vowels, so that their parts are compared by their consonants. Names in Chinese
// characters that are not Chinese match the same characters only.
//
// The package keeps no state beyond an Index, calls no other service, and may be used by several goroutines.
package names

import (
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

// Kind is what a name belongs to. It decides how words are read: "V" is a number in the name of a fund, and an initial in a person's.
type Kind uint8

// The kinds of names.
const (
	Unknown Kind = iota
	Person
	Organisation
)

// How says how two parts matched.
type How string

// The ways in which parts match, the surest first.
const (
	Exact    How = "exact"    // the same letters, after they were written in Latin
	Variant  How = "variant"  // a nickname, an abbreviation, or another form of the same organisation type or number
	Sound    How = "sound"    // another transliteration of the same sounds
	Joined   How = "joined"   // written as one word here and as several there
	Spelling How = "spelling" // a few letters differ
	Initial  How = "initial"  // one is the first letter of the other
)

// Match is the evidence for one part of a name.
type Match struct {
	Query, Entry string // the parts as they were written
	Score        float64
	How          How
}

// maxText bounds the letters that are read of a name. The longest name of the lists of 2026 has 330.
const maxText = 500

// maxParts bounds the parts of a name that are compared.
const maxParts = 32

type class uint8

const (
	word class = iota
	common
	particle
	title
	form
	number
)

// part is one word of a name, or several that mean one thing.
type part struct {
	written string  // as in the name
	plain   string  // the same in lower-case Latin letters and digits, without spaces
	text    string  // plain, or the canonical form of a word with a meaning
	key     string  // the sounds
	bones   string  // the consonants
	class   class   // what kind of word it is
	abjad   bool    // from a script that omits vowels
	vowels  bool    // from one that writes the vowels at both ends
	strict  bool    // a syllable, of which no letter differs
	exact   bool    // only the same characters match
	weight  float64 // by class and length
	others  []reading
}

// reading is another way to write a part in Latin letters.
type reading struct{ text, key, bones string }

// as returns the part in one of its readings. The first one is the part itself, and those after the last are as well.
func (p *part) as(n int) *part {
	if n == 0 || n > len(p.others) {
		return p
	}
	read, other := *p, p.others[n-1]
	read.plain, read.text, read.key, read.bones, read.others = other.text, other.text, other.key, other.bones, nil
	return &read
}

// readingsOf returns in how many ways the parts are read.
func readingsOf(parts []part) int {
	most := 0
	for _, p := range parts {
		most = max(most, len(p.others))
	}
	return most + 1
}

// Name is a name prepared to be compared.
type Name struct {
	kind   Kind
	parts  []part
	wholes []string // all words in their order, without spaces, in each reading
}

// Parse prepares a name. A text without letters and digits has no parts and matches nothing. Letters after the first 500 and parts
// after the first 32 are ignored.
func Parse(text string, kind Kind) Name {
	n := Name{kind: kind, parts: readParts(text, kind)}
	for k := range readingsOf(n.parts) {
		var whole strings.Builder
		for i := range n.parts {
			if p := n.parts[i].as(k); p.class == word || p.class == common || p.class == particle {
				whole.WriteString(p.plain)
			}
		}
		n.wholes = append(n.wholes, whole.String())
	}
	return n
}

// aliases separates the names in a text that holds several, and aliasWords by words alone.
var (
	aliasWords = regexp.MustCompile(`(?i)\s*(?:;|(?:\s|[(,])(?:a\.k\.a\.|aka|alias|f\.k\.a\.|fka|formerly)\s)\s*`)
	aliases    = regexp.MustCompile(aliasWords.String() + `|/`)
)

// Split returns the names in a text: lists write "Al-Qa'ida/Islamic Army" and "X a.k.a. Y" in one field. Usually it is one.
func Split(text string) []string {
	pieces := aliases.Split(text, -1)
	if len(pieces) == 1 {
		return pieces
	}
	for _, piece := range pieces {
		if utf8.RuneCountInString(strings.TrimSpace(piece)) < 4 { // such as "A/S"
			return []string{text}
		}
	}
	return pieces
}

// MaxNames is how many names of one text are compared.
const MaxNames = 5

// compared returns what to compare of a text: the names in it, and the whole without what separates them. A slash or "alias" within a
// single name would hide it otherwise.
func compared(text string) []string {
	pieces := Split(text)
	whole := strings.Join(aliasWords.Split(text, -1), " ")
	if len(pieces) > 1 {
		whole = strings.Join(pieces, " ")
	}
	if whole == text {
		return pieces
	}
	return append(pieces[:min(len(pieces), MaxNames)], whole)
}

// Empty reports whether the name has no parts.
func (n Name) Empty() bool { return len(n.parts) == 0 }

// String returns the parts of the name as they are compared, with spaces.
func (n Name) String() string {
	texts := make([]string, len(n.parts))
	for i, p := range n.parts {
		texts[i] = p.text
	}
	return strings.Join(texts, " ")
}

// Birth is a date of birth as far as it is known: lists often name the year alone. Zero stands for unknown.
type Birth struct{ Year, Month, Day int }

// Signals are what else is known of a name: they can lower a score and never raise it. Missing ones change nothing.
type Signals struct {
	Births    []Birth
	Countries []string // in one form
}

// By how much a contradiction lowers a score.
const (
	otherYear    = 0.8  // born at least two years apart
	otherDay     = 0.95 // born in the same or the next year, on another day
	otherCountry = 0.95
)

// Factor returns by how much a score is multiplied: 1 unless a signal contradicts.
func (s Signals) Factor(entry Signals) float64 {
	factor := 1.0
	if len(s.Births) > 0 && len(entry.Births) > 0 {
		factor = 0
		for _, a := range s.Births {
			for _, b := range entry.Births {
				factor = max(factor, a.factor(b))
			}
		}
	}
	if len(s.Countries) > 0 && len(entry.Countries) > 0 && !slices.ContainsFunc(s.Countries, func(c string) bool { return slices.Contains(entry.Countries, c) }) {
		factor *= otherCountry
	}
	return factor
}

// factor compares two dates. Lists exchange day and month, and name a year that is off by one.
func (b Birth) factor(other Birth) float64 {
	switch apart := b.Year - other.Year; {
	case b.Year == 0 || other.Year == 0:
		return 1
	case apart < -1 || apart > 1:
		return otherYear
	case b.Month == 0 || other.Month == 0:
		return 1
	case b == other, b.Year == other.Year && b.Month == other.Day && b.Day == other.Month:
		return 1
	case b.Year == other.Year && b.Month == other.Month && (b.Day == 0 || other.Day == 0):
		return 1
	default:
		return otherDay
	}
}
