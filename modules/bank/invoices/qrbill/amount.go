package qrbill

import (
	"strconv"
	"strings"
)

// maxAmount is 999 999 999.99, the largest amount that the standard allows.
const maxAmount Amount = 99_999_999_999

// maxWholeDigits is the maximum number of digits before the decimal point. A JSON number could not hold a longer amount
// without loss.
const maxWholeDigits = 12

// parseAmount parses the text of the amount. The amount is nil when the text is empty or ambiguous. The rules are those that
// the text violates.
func parseAmount(text string) (amount *Amount, rules []Rule) {
	if text == "" {
		return nil, nil
	}
	standard := isStandardAmount(text)
	number := strings.TrimSpace(text)
	negative := false
	switch {
	case strings.HasPrefix(number, "-"):
		negative, number = true, number[1:]
	case strings.HasPrefix(number, "+"):
		number = number[1:]
	}
	whole, fraction, ok := splitNumber(number)
	if !ok || number == "" || len(fraction) > 2 {
		return nil, []Rule{RuleFormat}
	}
	cents := (whole + fraction + "00")[:len(whole)+2]
	n, err := strconv.ParseInt(cents, 10, 64)
	if err != nil {
		return nil, []Rule{RuleFormat}
	}
	value := Amount(n)
	if negative {
		value = -value
	}
	if !standard {
		rules = append(rules, RuleFormat)
	}
	switch {
	case value < 0 || value > maxAmount:
		rules = append(rules, RuleRange)
	case len(text) > 12:
		rules = append(rules, RuleLength)
	}
	if standard && len(fraction) != 2 {
		rules = append(rules, NoteDecimals)
	}
	if standard && value == 0 {
		rules = append(rules, NoteNoPayment)
	}
	return &value, rules
}

// isStandardAmount accepts digits without leading zeros and up to two decimals after a point. The standard requires two
// decimals, but fewer are common and unambiguous.
func isStandardAmount(text string) bool {
	whole, fraction, point := strings.Cut(text, ".")
	if whole == "" || !allDigits(whole) || (len(whole) > 1 && whole[0] == '0') {
		return false
	}
	return !point || (fraction != "" && len(fraction) <= 2 && allDigits(fraction))
}

// splitNumber splits a number, which may have thousands separators or a decimal comma, into its whole and its fractional
// digits. It rejects ambiguous numbers.
func splitNumber(s string) (whole, fraction string, ok bool) {
	s = strings.NewReplacer("’", "'", "\u00a0", " ", "\u202f", " ", "\u2009", " ").Replace(s)
	point, comma := strings.Count(s, "."), strings.Count(s, ",")
	decimal, group := ".", ""
	switch {
	case point == 1 && comma == 1: // 1,949.70 or 1.949,70: the last separator is the decimal one
		group = ","
		if strings.Index(s, ",") > strings.Index(s, ".") {
			decimal, group = ",", "."
		}
	case comma == 1 && point == 0:
		decimal = ","
	case comma > 1 && point <= 1:
		group = ","
	case point > 1 && comma <= 1:
		decimal, group = ",", "."
	case point > 1 || comma > 1:
		return "", "", false
	}
	whole, fraction, found := strings.Cut(s, decimal)
	if found && fraction == "" && whole == "" {
		return "", "", false
	}
	for _, sep := range []string{group, "'", " "} {
		if sep == "" || !strings.Contains(whole, sep) {
			continue
		}
		if whole, ok = ungroup(whole, sep); !ok {
			return "", "", false
		}
	}
	if whole == "" {
		whole = "0"
	}
	if !allDigits(whole) || !allDigits(fraction) || len(whole) > maxWholeDigits {
		return "", "", false
	}
	// "1,949" and "1.949" are ambiguous. The caller rejects them, because they have more than two decimals.
	return whole, fraction, true
}

// ungroup joins groups of three digits. Only the first group may be shorter.
func ungroup(s, sep string) (string, bool) {
	groups := strings.Split(s, sep)
	for i, g := range groups {
		if !allDigits(g) || g == "" || (i > 0 && len(g) != 3) || len(g) > 3 {
			return "", false
		}
	}
	return strings.Join(groups, ""), true
}

func allDigits(s string) bool { return strings.Trim(s, "0123456789") == "" }

// ibanLength is the length of every Swiss and Liechtenstein IBAN.
const ibanLength = 21

// checkIBAN checks an IBAN without blanks and in upper case. It returns the violated rule, or "".
func checkIBAN(iban string) Rule {
	if iban == "" {
		return RuleRequired
	}
	if len(iban) < 2 || !isUpper(iban[0]) || !isUpper(iban[1]) {
		return RuleFormat
	}
	if country := iban[:2]; country != "CH" && country != "LI" {
		return RuleCountry
	}
	if len(iban) != ibanLength {
		return RuleLength
	}
	for i := 2; i < len(iban); i++ {
		// Check digits and the institution (IID) are digits, the account number consists of letters and digits.
		if !isDigit(iban[i]) && (i < 9 || !isUpper(iban[i])) {
			return RuleFormat
		}
	}
	if mod97(iban) != 1 {
		return RuleChecksum
	}
	return ""
}

// isQRIBAN reports whether the institution (IID) is in the range of QR-IBANs, 30000 to 31999.
func isQRIBAN(iban string) bool {
	if len(iban) != ibanLength {
		return false
	}
	iid := iban[4:9]
	return iid >= "30000" && iid <= "31999"
}

// mod97 computes the checksum of an IBAN or a creditor reference by ISO 7064: it moves the first four characters to the end,
// and replaces letters by 10 to 35.
func mod97(s string) int {
	if len(s) < 4 {
		return -1
	}
	rest := 0
	for _, part := range [2]string{s[4:], s[:4]} {
		for i := 0; i < len(part); i++ {
			switch c := part[i]; {
			case isDigit(c):
				rest = (rest*10 + int(c-'0')) % 97
			case isUpper(c):
				rest = (rest*100 + int(c-'A') + 10) % 97
			default:
				return -1
			}
		}
	}
	return rest
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }
func isUpper(c byte) bool { return c >= 'A' && c <= 'Z' }

// Reference types of the standard.
const (
	TypeQRR  = "QRR"
	TypeSCOR = "SCOR"
	TypeNON  = "NON"
)

// checkQRReference checks the 27 digits of a QR reference. It returns the violated rule, or "".
func checkQRReference(ref string) Rule {
	if ref == "" {
		return RuleRequired
	}
	if strings.Trim(ref, "0123456789") != "" {
		return RuleFormat
	}
	if len(ref) != 27 {
		return RuleLength
	}
	if strings.Trim(ref, "0") == "" {
		return RuleValue
	}
	if mod10(ref[:26]) != ref[26] {
		return RuleChecksum
	}
	return ""
}

// mod10 computes the check digit of a string of digits (modulo 10, recursive).
func mod10(digits string) byte {
	carryOf := [10]byte{0, 9, 4, 6, 8, 2, 7, 1, 3, 5}
	var carry byte
	for i := 0; i < len(digits); i++ {
		carry = carryOf[(carry+digits[i]-'0')%10]
	}
	return '0' + (10-carry)%10
}

// checkCreditorReference checks a creditor reference (ISO 11649). It returns the violated rule, or "".
func checkCreditorReference(ref string) Rule {
	if ref == "" {
		return RuleRequired
	}
	if len(ref) < 5 || len(ref) > 25 {
		return RuleLength
	}
	if !strings.HasPrefix(ref, "RF") || !isDigit(ref[2]) || !isDigit(ref[3]) {
		return RuleFormat
	}
	for i := 4; i < len(ref); i++ {
		if !isDigit(ref[i]) && !isUpper(ref[i]) {
			return RuleFormat
		}
	}
	// Check digits are 98 minus a remainder, so that valid ones are between 02 and 98.
	if d := ref[2:4]; d == "00" || d == "01" || d == "99" {
		return RuleChecksum
	}
	if mod97(ref) != 1 {
		return RuleChecksum
	}
	return ""
}
