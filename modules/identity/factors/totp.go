package factors

import (
	"crypto/rand"
	"crypto/subtle"
	"encoding/base32"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/pquerna/otp"
	"github.com/pquerna/otp/hotp"
)

// The parameters of RFC 6238 that every authenticator app supports.
const (
	totpPeriod      = 30 * time.Second
	totpDigits      = 6
	totpSkew        = 1  // steps that the clock of a phone may be off
	totpSecretBytes = 20 // the length of a SHA-1 hash (RFC 4226, section 4)
)

var secretEncoding = base32.StdEncoding.WithPadding(base32.NoPadding)

// newSecret returns a random secret in base32.
func newSecret() string {
	var secret [totpSecretBytes]byte
	rand.Read(secret[:]) // does not fail: it would end the program
	return secretEncoding.EncodeToString(secret[:])
}

// stepAt returns the number of the time step of a moment.
func stepAt(at time.Time) int64 { return at.Unix() / int64(totpPeriod/time.Second) }

// matchStep returns the time step around now whose code is the given one. It takes the same time for every code. ok is false
// for a wrong code.
func matchStep(secret, code string, now time.Time) (step int64, ok bool) {
	typed := []byte(parseTOTP(code))
	for s := stepAt(now) - totpSkew; s <= stepAt(now)+totpSkew; s++ {
		want, err := codeAt(secret, s)
		if err == nil && subtle.ConstantTimeCompare(typed, []byte(want)) == 1 {
			step, ok = s, true
		}
	}
	return step, ok
}

// codeAt returns the code of a time step.
func codeAt(secret string, step int64) (string, error) {
	if step < 0 {
		return "", otp.ErrValidateInputInvalidLength
	}
	return hotp.GenerateCodeCustom(secret, uint64(step), hotp.ValidateOpts{Digits: otp.DigitsSix, Algorithm: otp.AlgorithmSHA1})
}

// parseTOTP removes the spaces that apps show within a code. It returns an empty text for a text that cannot be a code.
func parseTOTP(typed string) string {
	const longest = 16
	if len(typed) > longest {
		return ""
	}
	code := strings.ReplaceAll(typed, " ", "")
	if len(code) != totpDigits || strings.Trim(code, "0123456789") != "" {
		return ""
	}
	return code
}

// totpURI returns the address that authenticator apps read from a QR code. Some apps show a plus sign as it is, so that
// spaces are written as %20.
func totpURI(issuer, account, secret string) string {
	q := url.Values{"secret": {secret}, "issuer": {issuer}, "algorithm": {"SHA1"}, "digits": {strconv.Itoa(totpDigits)},
		"period": {strconv.Itoa(int(totpPeriod / time.Second))}}
	label := url.QueryEscape(issuer) + ":" + url.QueryEscape(account)
	return "otpauth://totp/" + strings.ReplaceAll(label+"?"+q.Encode(), "+", "%20")
}
