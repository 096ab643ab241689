package types

import (
	"strings"
	"sync"
	"unicode"

	"golang.org/x/text/unicode/norm"
)

// likeASCII maps a character to the letter of ASCII that it looks like.
var likeASCII = sync.OnceValue(func() map[rune]rune {
	table := make(map[rune]rune, 512)
	for letter, characters := range lookAlikes {
		for _, r := range characters {
			table[r] = rune(letter)
		}
	}
	return table
})

// likeLatinCapitals maps a character to the Latin letter that it looks like before it is folded.
var likeLatinCapitals = sync.OnceValue(func() map[rune]rune {
	table := make(map[rune]rune, 64)
	for letter, characters := range capitalLookAlikes {
		for _, r := range characters {
			table[r] = rune(letter)
		}
	}
	return table
})

// LookAlike returns the key that texts share when they look alike: folded, in normal form KC, without invisible characters, and
// with the ASCII letter for every character that looks like one. ASCII texts are only folded, so that l and 1 stay different.
// LookAlike of a key is the key itself.
func LookAlike(s string) string {
	if isASCII(s) {
		return Fold(s)
	}
	table := likeASCII()
	for range maxFoldRounds {
		next := Fold(norm.NFKC.String(strings.Map(func(r rune) rune {
			if isInvisible(r) {
				return -1
			}
			if letter, ok := table[r]; ok {
				return letter
			}
			return r
		}, Fold(norm.NFKC.String(s)))))
		if next == s {
			break
		}
		s = next
	}
	return s
}

// isInvisible reports whether a character is not displayed (Unicode, Default_Ignorable_Code_Point).
func isInvisible(r rune) bool {
	return unicode.In(r, unicode.Cf, unicode.Variation_Selector, unicode.Other_Default_Ignorable_Code_Point)
}

// LookAlikeKey is like [Email.Key]. Addresses that look alike share it.
func (e Email) LookAlikeKey() string {
	key := e.Key()
	local, domain, found := strings.Cut(key, "@")
	if !found {
		return LookAlike(key)
	}
	if shown, err := domainRules.ToUnicode(domain); err == nil {
		if like := LookAlike(shown); like != shown {
			domain = like
			if ascii, err := domainRules.ToASCII(like); err == nil {
				domain = ascii
			}
		}
	}
	return LookAlike(local) + "@" + domain
}
