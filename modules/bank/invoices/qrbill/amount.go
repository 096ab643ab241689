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
