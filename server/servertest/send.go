package servertest

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"

	"kontor/locales"
	"kontor/store"
)

// Send sends one request to an address and reads the whole response, without validating it against the API document. Headers
// are given in pairs.
func Send(t testing.TB, address, method, path, body string, headers ...string) (*http.Response, string) {
	t.Helper()
	request, err := http.NewRequestWithContext(context.Background(), method, "http://"+address+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if body != "" {
		request.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i+1 < len(headers); i += 2 {
		request.Header.Set(headers[i], headers[i+1])
	}
	response, err := http.DefaultTransport.RoundTrip(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response, string(answer)
}

// Texts returns the texts of the locale files.
func Texts(t testing.TB) *locales.Bundle {
	t.Helper()
	texts, err := locales.Load()
	if err != nil {
		t.Fatal(err)
	}
	return texts
}

// Exec runs one statement in a transaction of its own.
func Exec(t testing.TB, db *store.DB, statement string, args ...any) {
	t.Helper()
	InTx(t, db, func(ctx context.Context, tx *store.Tx) error {
		_, err := tx.Exec(ctx, statement, args...)
		return err
	})
}

// InTx runs f in a transaction and stops the test if that fails.
func InTx(t testing.TB, db *store.DB, f func(ctx context.Context, tx *store.Tx) error) {
	t.Helper()
	ctx := context.Background()
	if err := db.InTx(ctx, func(tx *store.Tx) error { return f(ctx, tx) }); err != nil {
		t.Fatal(err)
	}
}
