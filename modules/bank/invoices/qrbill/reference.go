package qrbill

import "strings"

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
