package qrbill

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
