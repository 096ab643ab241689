package auth

import (
	"bufio"
	"bytes"
	"compress/gzip"
	_ "embed"
	"fmt"
	"slices"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"kontor/server/apierr"
)

// maxPasswordLength is the greatest length of a password in characters. The least is a setting.
const maxPasswordLength = 128

// isTooLong reports whether a text is longer than any password. It does not count the characters of a far longer text.
func isTooLong(text string) bool {
	return len(text) > maxPasswordLength*utf8.UTFMax || utf8.RuneCountInString(text) > maxPasswordLength
}

// minRest is the number of characters that a password must have beside a credential value that it contains.
const minRest = 6

// minValuePart is the shortest part of a credential value that a password is searched for. Shorter parts occur by chance.
const minValuePart = 4

// maxRepeatedUnit is the longest string whose repetition is a common password.
const maxRepeatedUnit = 3

// maxCommonLength is the longest password of the list in bytes. Longer passwords are not among the first guesses.
const maxCommonLength = 20

// runs are sequences that people append to reach a minimum length. A password that is a run, or a common word followed by a
// run, is a common password.
var runs = [...]string{
	"12345678901234567890", "01234567890123456789", "98765432109876543210", "abcdefghijklmnopqrstuvwxyz",
	"qwertyuiopasdfghjklzxcvbnm", "qwertzuiopasdfghjklyxcvbnm", "azertyuiopqsdfghjklmwxcvbn",
}

// productName is a common word in guesses at passwords of this service (NIST SP 800-63B-4, section 3.1.1.2).
const productName = "kontor"

//go:embed common_passwords.txt.gz
var commonPasswordsFile []byte

// commonPasswords is read at the first new password, not at start.
var commonPasswords = sync.OnceValue(func() []string {
	file, err := gzip.NewReader(bytes.NewReader(commonPasswordsFile))
	if err != nil {
		panic(fmt.Errorf("embedded list of passwords: %w", err))
	}
	var list []string
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		list = append(list, lines.Text())
	}
	if err := lines.Err(); err != nil {
		panic(fmt.Errorf("embedded list of passwords: %w", err))
	}
	return list
})

// CheckPassword adds what is wrong with a new password to problems. personal are values that it must not restate: the user's
// credentials. There are no rules on kinds of characters (NIST SP 800-63B-4, section 3.1.1.2).
func (s *Service) CheckPassword(problems *apierr.Fields, field, password string, personal ...string) {
	if isTooLong(password) { // before any check that reads all of it
		problems.Add(field, "invalid.max_length", apierr.Args{"Max": maxPasswordLength})
		return
	}
	length := utf8.RuneCountInString(password)
	switch {
	case password == "":
		problems.Add(field, "invalid.required")
		return
	case length < s.options.PasswordMinLength:
		problems.Add(field, "invalid.min_length", apierr.Args{"Min": s.options.PasswordMinLength})
		return
	}
	lower := strings.ToLower(password)
	if isCommon(lower) || isDecorated(lower) || isContext(lower, []string{productName}) {
		problems.Add(field, "invalid.password_common")
		return
	}
	for _, value := range personal {
		value = strings.ToLower(strings.TrimSpace(value))
		if restatesValue(lower, value) || isContext(lower, valueWords(value)) {
			problems.Add(field, "invalid.password_credential")
			return
		}
	}
	if s.isBreached(password) {
		problems.Add(field, "invalid.password_breached")
	}
}

// isBreached reports whether a password is in the file of breached passwords. If the file cannot be read any more, it logs an
// error and reports false: the other rules stay in force, and a failing disk must not prevent recoveries.
func (s *Service) isBreached(password string) bool {
	if s.breached == nil {
		return false
	}
	found, err := s.breached.Contains(password)
	if err != nil {
		s.options.Log.Error("new password not compared with breached passwords", "setting", "auth.breached_passwords_file", "cause", err)
	}
	return found
}

// isCommon reports whether a password in lower case is among the first guesses: in the list, a repetition of a short or
// common text, a keyboard run, or a listed word followed by a run of digits.
func isCommon(password string) bool {
	if len(password) > maxCommonLength {
		return false
	}
	word := strings.TrimRight(password, "0123456789")
	digits := password[len(word):]
	return isListed(password) || repeats(password) || isRun(password) || isListed(word) && (isRun(digits) || repeats(digits))
}

func isListed(word string) bool {
	_, found := slices.BinarySearch(commonPasswords(), word)
	return found || word == productName
}

// repeats reports whether a text is a repetition of a short string or a common word.
func repeats(text string) bool {
	for unit := 1; unit <= len(text)/2; unit++ {
		again := strings.HasPrefix(strings.Repeat(text[:unit], len(text)/unit+1), text)
		if again && (unit <= maxRepeatedUnit || isListed(text[:unit]) || isRun(text[:unit])) {
			return true
		}
	}
	return false
}

// isRun reports whether a text is the beginning of a run, or a longer part of one.
func isRun(text string) bool {
	for _, run := range runs {
		if strings.HasPrefix(run, text) || len(text) > 2 && strings.Contains(run, text) {
			return true
		}
	}
	return false
}

// restatesValue reports whether the password is the credential value, or little more than it or, for an e-mail
// address, than the part before the @.
func restatesValue(password, value string) bool {
	local, _, isEmail := strings.Cut(value, "@")
	parts := []string{value}
	if isEmail {
		parts = append(parts, local)
	}
	for _, part := range parts {
		if utf8.RuneCountInString(part) < minValuePart || !strings.Contains(password, part) {
			continue
		}
		if rest := strings.ReplaceAll(password, part, ""); utf8.RuneCountInString(rest) < minRest {
			return true
		}
	}
	return false
}

// Attackers first try the words that belong to a person or a service, with the suffixes that people add to reach a minimum
// length: a year, digits, exclamation marks (NIST SP 800-63B-4, section 3.1.1.2).

// minOther is the number of letters that a password must have beside words of its context.
const minOther = 3

// substitutions replace digits and signs by the letters that they stand for. 1 and ! stand for i in the first list and for l
// in the second.
var substitutions = [...]*strings.Replacer{
	strings.NewReplacer("0", "o", "1", "i", "!", "i", "3", "e", "4", "a", "@", "a", "5", "s", "$", "s", "7", "t", "8", "b"),
	strings.NewReplacer("0", "o", "1", "l", "!", "l", "3", "e", "4", "a", "@", "a", "5", "s", "$", "s", "7", "t", "8", "b"),
}

// spellings returns a text unchanged, and with the letters that its digits and signs may stand for.
func spellings(text string) []string {
	all := []string{text}
	for _, s := range substitutions {
		if other := s.Replace(text); !slices.Contains(all, other) {
			all = append(all, other)
		}
	}
	return all
}

func isLetter(r rune) bool { return unicode.IsLetter(r) || unicode.IsMark(r) }

func noLetter(r rune) bool { return !isLetter(r) }

// isDecorated reports whether a password in lower case is a common word with digits and signs around it.
func isDecorated(password string) bool {
	core := strings.TrimFunc(password, noLetter)
	if utf8.RuneCountInString(core) < minValuePart {
		return false
	}
	return slices.ContainsFunc(spellings(core), isListed)
}

// isContext reports whether a password in lower case consists of the words, common words, digits and signs: whether it
// has fewer than minOther letters beside them.
func isContext(password string, words []string) bool {
	for _, spelling := range spellings(password) {
		rest, found := []byte(password), false
		for _, word := range words {
			for at := strings.Index(spelling, word); at >= 0; at = strings.Index(spelling, word) {
				blank := strings.Repeat(" ", len(word))
				// A spelling has each character where the password has it.
				copy(rest[at:], blank)
				spelling, found = spelling[:at]+blank+spelling[at+len(word):], true
			}
		}
		if found && otherLetters(string(rest)) < minOther {
			return true
		}
	}
	return false
}

// otherLetters counts the letters of a text that belong to no common word.
func otherLetters(text string) (n int) {
	for _, word := range strings.FieldsFunc(text, noLetter) {
		if length := utf8.RuneCountInString(word); length < minValuePart || !isListed(word) {
			n += length
		}
	}
	return n
}

// valueWords are the words of a credential value in lower case: those of the part before the @ and of the domain but its
// last label, longest first.
func valueWords(value string) []string {
	local, domain, isEmail := strings.Cut(value, "@")
	if dot := strings.LastIndexByte(domain, '.'); isEmail && dot >= 0 {
		domain = domain[:dot]
	}
	var words []string
	for _, part := range strings.FieldsFunc(local+" "+domain, noLetter) {
		if utf8.RuneCountInString(part) >= minValuePart {
			words = append(words, part)
		}
	}
	slices.SortFunc(words, func(a, b string) int { return len(b) - len(a) })
	return words
}
