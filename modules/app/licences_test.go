package app_test

import (
	"net/http"
	"strings"
	"testing"

	"kontor/licences"
	"kontor/server/servertest"
)

// TestLicences_AreForAllCallers reads the licences without a session, as the link of the sign-in screen does.
func TestLicences_AreForAllCallers(t *testing.T) {
	s := servertest.Start(t)
	answer := s.Anonymous().Do("GET", "/licences", nil).Expect(t, http.StatusOK)
	if !strings.HasPrefix(answer.Body, string(licences.Kontor)) || !strings.HasSuffix(answer.Body, licences.ThirdParty) {
		t.Errorf("the text has %d bytes, and lacks the licence of Kontor or those of others", len(answer.Body))
	}
	for name, want := range map[string]string{"Content-Type": "text/plain; charset=utf-8", "X-Content-Type-Options": "nosniff", "Cache-Control": "public, max-age=3600"} {
		if got := answer.Header.Get(name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	if head := s.Anonymous().Do("HEAD", "/licences", nil).Expect(t, http.StatusOK); head.Body != "" {
		t.Errorf("the answer to HEAD has %d bytes", len(head.Body))
	}
	s.Anonymous().Do("POST", "/licences", nil).Expect(t, http.StatusNotFound)
	s.Anonymous().Do("GET", "/licences/", nil).Expect(t, http.StatusNotFound)
}
