package factors

import (
	"crypto/rand"
	"encoding/hex"
	"strings"
	"unicode"
)

const (
	codeCount  = 10
	codeLength = 12 // characters of five bits: 60 bits
	codeGroup  = 4  // characters between hyphens

	// codeAlphabet is that of Crockford: digits and letters without I, L, O and U, which are easily confused.
	codeAlphabet = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
)

// newCodes returns ten different recovery codes as they are shown, such as 7K2M-9QPT-4XWD.
func newCodes() []string {
	codes, seen := make([]string, 0, codeCount), map[string]bool{}
	for len(codes) < codeCount {
		if code := newCode(); !seen[code] {
			seen[code] = true
			codes = append(codes, code)
		}
	}
	return codes
}

func newCode() string {
	var random [codeLength]byte
	rand.Read(random[:]) // does not fail: it would end the program
	var b strings.Builder
	for i, r := range random {
		if i > 0 && i%codeGroup == 0 {
			b.WriteByte('-')
		}
		b.WriteByte(codeAlphabet[int(r)%len(codeAlphabet)]) // 256 is a multiple of 32, so every character is as likely
	}
	return b.String()
}

// parseCode returns a recovery code as people type it in its stored form: twelve characters in upper case. Spaces and hyphens
// do not count; O is read as 0, and I and L as 1. ok is false for a text that cannot be a code.
func parseCode(typed string) (code string, ok bool) {
	const longest = 64 // a code with generous spaces
	if len(typed) > longest {
		return "", false
	}
	var b strings.Builder
	for _, r := range typed {
		switch r {
		case ' ', '\t', '-', '\u2010', '\u2011', '\u2012', '\u2013', '\u2014', '\u2212', '\u00a0': // hyphens and dashes that text programs insert
			continue
		}
		if 'a' <= r && r <= 'z' { // only these: the capital letter of some others is in the alphabet, too
			r -= 'a' - 'A'
		}
		switch r {
		case 'O':
			r = '0'
		case 'I', 'L':
			r = '1'
		}
		if r > unicode.MaxASCII || !strings.ContainsRune(codeAlphabet, r) {
			return "", false
		}
		b.WriteByte(byte(r))
	}
	return b.String(), b.Len() == codeLength
}

// codePurpose is the purpose of the keyed hash of a code. The hashes survive a rotation of the master key, because the codes
// are not stored and cannot be hashed again.
const codePurpose = "recovery code"

// codeHash returns the stored hash of a new code in its stored form. It covers the factor.
func (s *Service) codeHash(factorID, code string) string {
	return hex.EncodeToString(s.db.Keyed(codePurpose, []byte(factorID+" "+code)))
}

// codeHashes returns the hashes that a code may have, by the keys of former rotations too.
func (s *Service) codeHashes(factorID, code string) []string {
	hashes := []string{s.codeHash(factorID, code)}
	for _, older := range s.db.KeyedOlder(codePurpose, []byte(factorID+" "+code)) {
		hashes = append(hashes, hex.EncodeToString(older))
	}
	return hashes
}
