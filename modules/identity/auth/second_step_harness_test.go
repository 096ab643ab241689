package auth_test

import (
	"maps"
	"net/http"
	"testing"

	"kontor/store"
)

const (
	wrongFactor = "auth_m.invalid_factor"
	expired     = "auth_m.challenge_expired"
	lockedOut   = "auth_m.cooling_off"
)

// newEnrolled returns a harness with a user, anna@example.ch, who has second factors.
func newEnrolled(t *testing.T, methods ...string) (h *harness, anna string) {
	t.Helper()
	h = newHarness(t)
	anna = h.user("anna@example.ch")
	h.factors.enrol(anna, methods...)
	return h, anna
}

// firstStep signs in with the password and returns the next step.
func (h *harness) firstStep(value string, headers ...string) answer {
	h.Helper()
	step := h.signIn(value, password, headers...)
	if step.status != http.StatusAccepted || step.text("access_token") != "" || step.text("token") == "" {
		h.Fatalf("first step of %s: %d %s", value, step.status, step.body)
	}
	return step
}

// secondStep sends an answer for a token.
func (h *harness) secondStep(token string, body map[string]any, headers ...string) answer {
	h.Helper()
	body = maps.Clone(body)
	body["token"] = token
	return h.call("POST", "/authenticate/factor", body, headers...)
}

// completeSignIn signs in with the password and an answer.
func (h *harness) completeSignIn(value string, body map[string]any, headers ...string) answer {
	h.Helper()
	a := h.secondStep(h.firstStep(value, headers...).text("token"), body, headers...)
	if a.status != http.StatusOK {
		h.Fatalf("second step of %s: %d %s", value, a.status, a.body)
	}
	return a
}

// passkeyAnswer returns the answer of a passkey to the options of a request.
func passkeyAnswer(a answer, secret string) map[string]any {
	options, _ := a.json["options"].(map[string]any)
	if nested, ok := a.json["passkey"].(map[string]any); ok {
		options = nested["options"].(map[string]any)
	}
	return object("passkey", map[string]any{"challenge": options["challenge"], "secret": secret})
}

// currentSession returns the session of an access token.
func (h *harness) currentSession(userID, token string) map[string]any {
	h.Helper()
	for _, row := range h.getSessions(userID, token).json["data"].([]any) {
		if session := row.(map[string]any); session["current"] == true {
			return session
		}
	}
	h.Fatal("no current session")
	return nil
}

func (h *harness) setStatus(userID, status string) {
	h.inTx(func(tx *store.Tx) error {
		_, err := tx.Exec(h.Context(), `UPDATE users SET status = $2 WHERE id = $1`, userID, status)
		return err
	})
}
