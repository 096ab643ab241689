package factors

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"kontor/server/apierr"
)

func FuzzPasskeyAnswers(f *testing.F) {
	r := newRelyingParty("https://bank.example", "Kontor")
	a := account{handle: make([]byte, 16), name: "anna", label: "Anna"}
	_, enrolment, err := r.beginEnrolment(a, "1")
	if err != nil {
		f.Fatal(err)
	}
	_, signIn, err := r.beginSignIn(nil)
	if err != nil {
		f.Fatal(err)
	}
	for _, seed := range []string{
		`{}`, `[]`, `null`, ``, `{"id":"AA","rawId":"AA","type":"public-key","response":{"clientDataJSON":"e30","attestationObject":"oA"}}`,
		`{"id":"AA","rawId":"AA","type":"public-key","response":{"clientDataJSON":"e30","authenticatorData":"AAAA","signature":"AA","userHandle":"AA"}}`,
	} {
		f.Add([]byte(seed), []byte(`{"purpose":"sign_in"}`))
	}
	f.Fuzz(func(t *testing.T, answer, kept []byte) {
		for _, session := range [][]byte{enrolment, kept} {
			if _, err := r.finishEnrolment(a, session, "1", jsontext.Value(answer)); !errors.Is(err, apierr.InvalidFactor) {
				t.Errorf("an enrolment with %q: %v", answer, err)
			}
		}
		parsed, err := parseAssertion(answer)
		if err != nil {
			if !errors.Is(err, apierr.InvalidFactor) {
				t.Errorf("an assertion %q: %v", answer, err)
			}
			return
		}
		for _, session := range [][]byte{signIn, kept} {
			if _, _, err := r.finishSignIn(a, session, parsed, true); !errors.Is(err, apierr.InvalidFactor) {
				t.Errorf("a sign-in with %q: %v", answer, err)
			}
		}
	})
}

// The data of one ceremony cannot be used for another purpose or another factor.
func TestCeremony_HasOnePurpose(t *testing.T) {
	r := newRelyingParty("https://bank.example", "Kontor")
	a := account{handle: make([]byte, 16), name: "anna", label: "Anna"}
	_, enrolment, err := r.beginEnrolment(a, "1")
	if err != nil {
		t.Fatal(err)
	}
	if options, _, err := r.beginSignIn(&a); err == nil {
		t.Errorf("a sign-in of a user without passkeys: %s", options)
	}
	_, signIn, err := r.beginSignIn(nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, purpose, factorID string
		kept                    []byte
		ok                      bool
	}{
		{"enrolment", forEnrolment, "1", enrolment, true},
		{"sign-in", forSignIn, "", signIn, true},
		{"enrolment of another factor", forEnrolment, "2", enrolment, false},
		{"enrolment as sign-in", forSignIn, "", enrolment, false},
		{"sign-in as enrolment", forEnrolment, "1", signIn, false},
		{"nothing", forSignIn, "", nil, false},
		{"garbage", forSignIn, "", []byte("}"), false},
		{"no purpose", forSignIn, "", []byte("{}"), false},
	} {
		if _, err := openCeremony(c.kept, c.purpose, c.factorID); (err == nil) != c.ok {
			t.Errorf("%s: %v, want success %t", c.name, err, c.ok)
		}
	}
	var kept ceremony
	if err := json.Unmarshal(enrolment, &kept); err != nil || kept.Session.UserVerification != "required" {
		t.Errorf("the enrolment requires %q, %v", kept.Session.UserVerification, err)
	}
}
