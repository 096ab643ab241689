//go:build linux && (amd64 || arm64)

package auth_test

import (
	"testing"

	"kontor/modules/identity/auth"
	"kontor/server/apierr"
)

// A password that could not be compared is neither wrong nor right: the answer is a temporary failure, and no attempt is used up.
func TestSignIn_FailsTemporarilyWhenNoProcessCanHash(t *testing.T) {
	h := newHarness(t)
	h.user("anna@example.ch")
	h.failSignIns(4, "anna@example.ch")
	h.stop()
	h.start(func(o *auth.Options) { o.HashInChildren = true })
	h.auth.FailHashes(t.Context())
	for _, typed := range []string{password, "wrong"} {
		for range 10 { // more than the free attempts
			a := h.signIn("anna@example.ch", typed)
			h.expect("without a process", a, 503, "common.unavailable")
			if a.header.Get("Retry-After") != "1" || a.json["retryable"] != true {
				t.Fatalf("503 without Retry-After, or not marked as temporary: %s", a.body)
			}
		}
	}
	h.expect("an unknown user", h.signIn("nobody@example.ch", "wrong"), 503, "common.unavailable")
	if _, err := h.auth.HashPassword(t.Context(), password); !isKind(err, apierr.Unavailable) {
		t.Errorf("hash a new password: %v", err)
	}
	h.stop()
	h.start(func(o *auth.Options) { o.HashInChildren = true })
	// The failures before still count: this is the fifth, and the lockout follows.
	h.failSignIns(1, "anna@example.ch")
	h.retryAfter(h.signIn("anna@example.ch", password))
}

func TestSignIn_HashesInAChild(t *testing.T) {
	h := newHarness(t, func(o *auth.Options) { o.HashInChildren = true })
	h.user("anna@example.ch")
	h.mustSignIn("anna@example.ch")
	h.failSignIns(1, "anna@example.ch")
	h.mustSignIn("anna@example.ch")
	if got := h.auth.Hashes(); got < 4 {
		t.Errorf("%d hashes", got)
	}
}
