package auth_test

import (
	"context"
	"strings"
	"testing"

	"kontor/modules/identity/auth"
	"kontor/server/access"
	"kontor/server/apierr"
	"kontor/store"
	"kontor/store/storetest"
)

func TestCheckPassword(t *testing.T) {
	service, err := auth.New(storetest.Open(t), auth.Options{})
	if err != nil {
		t.Fatal(err)
	}
	shorter, err := auth.New(storetest.Open(t), auth.Options{PasswordMinLength: 8})
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		name, password string
		service        *auth.Service
		want           string
	}{
		{"a good one", "correct horse battery", service, ""},
		{"of one kind of letters", "correcthorsebattery", service, ""},
		{"twelve characters of two bytes", "äöüéèàçñøåßî", service, ""},
		{"the longest", strings.Repeat("abcd ", 25) + "xyz", service, ""},
		{"with spaces and an emoji", "  längere Sätze 🙂 ", service, ""},
		{"none", "", service, "invalid.required"},
		{"eleven characters", "elf zeichen", service, "invalid.min_length"},
		{"eleven characters of two bytes", "äöüéèàçñøåß", service, "invalid.min_length"},
		{"too long", strings.Repeat("abcd ", 25) + "wxyz", service, "invalid.max_length"},
		{"a megabyte", strings.Repeat("x", 1<<20), service, "invalid.max_length"},
		{"the name of the service, a year and signs", "Kontor2026!!", service, "invalid.password_common"},
		{"the name of the service with digits for letters", "K0nt0r-2026!", service, "invalid.password_common"},
		{"the name of the service twice and signs", "!!Kontor.Kontor!!", service, "invalid.password_common"},
		{"the name of the service and a common word", "KontorPassword1", service, "invalid.password_common"},
		{"the name of the service and random letters", "kontor-x7#Qp9!zR2", service, ""},
		{"the name of the service in a sentence", "kontor feeds no bees", service, ""},
		{"a common word, a year and signs", "Password2026!!", service, "invalid.password_common"},
		{"a common word in leetspeak and a year", "P@ssw0rd.2026", service, "invalid.password_common"},
		{"a first name and a year", "Muster1990!!", service, "invalid.password_credential"},
		{"names in another order", "muster-anna-1990", service, "invalid.password_credential"},
		{"the domain of the address and a year", "example-2026-!", service, "invalid.password_credential"},
		{"common", "1qaz2wsx3edc", service, "invalid.password_common"},
		{"common in another case", "QWERTY123456", service, "invalid.password_common"},
		{"common and short", "password", shorter, "invalid.password_common"},
		{"a common word twice", "passwordpassword", service, "invalid.password_common"},
		{"digits in order", "123456789012", service, "invalid.password_common"},
		{"the longest, of one letter", strings.Repeat("x", 128), service, ""},
		{"four characters again and again", "Aa1!Aa1!Aa1!", service, ""},
		{"the alphabet", "abcdefghijkl", service, "invalid.password_common"},
		{"a walk over the keys", "qwertzuiopasdf", service, "invalid.password_common"},
		{"a common word and digits in order", "Welcome12345", service, "invalid.password_common"},
		{"a common word and one digit again", "letmein00000", service, "invalid.password_common"},
		{"the name of the service and digits", "Kontor123456", service, "invalid.password_common"},
		{"a common word and a year among others", "welcome home 2026", service, ""},
		{"one letter", "aaaaaaaaaaaaaaaa", service, "invalid.password_common"},
		{"three letters again and again", "abcabcabcabcab", service, "invalid.password_common"},
		{"the e-mail address", "Anna.Muster@example.ch", service, "invalid.password_credential"},
		{"the e-mail address and little more", "anna.muster@example.ch1!", service, "invalid.password_credential"},
		{"the name in the address and little more", "anna.muster123", service, "invalid.password_credential"},
		{"the name and much more", "anna.muster keeps bees", service, ""},
		{"the phone number", "+41791234567", service, "invalid.password_credential"},
		{"contains a short name", "bo and his friends", service, ""},
	} {
		var problems apierr.Fields
		test.service.CheckPassword(&problems, "password", test.password, "anna.muster@example.ch", "+41791234567", "bo", "")
		got := ""
		for _, text := range problems.All {
			got = text.Key
		}
		if got != test.want {
			t.Errorf("%s: got %q, want %q", test.name, got, test.want)
		}
	}
}

func TestSetPassword_ReplacesThePassword(t *testing.T) {
	h := newHarness(t)
	id := h.user("anna@example.ch")
	ctx := access.With(context.Background(), &access.Caller{UserID: id})
	hash, err := h.auth.HashPassword(ctx, "another long pass phrase")
	if err != nil || strings.Contains(hash, "another") {
		t.Fatal(hash, err)
	}
	h.inTx(func(tx *store.Tx) error { return h.auth.SetPassword(ctx, tx, id, hash) })
	h.expect("the old one", h.signIn("anna@example.ch", password), 401, "auth_m.invalid_credentials")
	h.expect("the new one", h.signIn("anna@example.ch", "another long pass phrase"), 200, "")
	for _, bad := range []string{"", "plain text", "$2a$10$abcdefghijklmnopqrstuv", "$argon2id$v=19$m=64,t=1,p=1$$"} {
		if err := h.db.InTx(ctx, func(tx *store.Tx) error { return h.auth.SetPassword(ctx, tx, id, bad) }); err == nil {
			t.Errorf("%q was stored as a hash", bad)
		}
	}
}

// Two users with the same password have different hashes.
func TestHashPassword_IsSalted(t *testing.T) {
	h := newHarness(t)
	first, err := h.auth.HashPassword(context.Background(), password)
	if err != nil {
		t.Fatal(err)
	}
	second, err := h.auth.HashPassword(context.Background(), password)
	if err != nil || first == second {
		t.Errorf("%s, %v", second, err)
	}
}
