package serviceaccounts

import (
	"crypto/rand"
	"encoding/base64"
	"encoding/hex"
	"strings"

	"github.com/google/uuid"
)

const (
	// tokenPrefix begins every token, so that scanners find tokens that leak. No access token begins so: those are JSON Web Tokens.
	tokenPrefix = "kontor_sa_"

	idDigits     = 32
	secretBytes  = 32
	secretLength = 43 // of secretBytes in base64url
	tokenLength  = len(tokenPrefix) + idDigits + 1 + secretLength
)

// newTokenText returns a token with a fresh secret: kontor_sa_<id>_<secret>.
func newTokenText(id string) string {
	secret := make([]byte, secretBytes)
	rand.Read(secret) // does not fail: it would end the program
	return tokenPrefix + strings.ReplaceAll(id, "-", "") + "_" + base64.RawURLEncoding.EncodeToString(secret)
}

// parseToken returns the id in a token. Only the exact form of [newTokenText] is accepted, so that a token has one text.
func parseToken(text string) (id string, ok bool) {
	if len(text) != tokenLength || !strings.HasPrefix(text, tokenPrefix) {
		return "", false
	}
	digits, secret, ok := strings.Cut(text[len(tokenPrefix):], "_")
	if !ok || len(digits) != idDigits || digits != strings.ToLower(digits) {
		return "", false
	}
	if _, err := base64.RawURLEncoding.Strict().DecodeString(secret); err != nil || strings.ContainsAny(secret, "\r\n") {
		return "", false
	}
	raw, err := hex.DecodeString(digits)
	if err != nil {
		return "", false
	}
	parsed, err := uuid.FromBytes(raw)
	return parsed.String(), err == nil
}
