package browser_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
)

// newServerWithPrintedPassword starts a server on an empty directory that prints the password of its administrator.
func newServerWithPrintedPassword(t *testing.T) (*testServer, person) {
	t.Helper()
	printed, err := os.Create(filepath.Join(t.TempDir(), "printed"))
	if err != nil {
		t.Fatal(err)
	}
	defer printed.Close()
	p := &process{address: freeAddress(t), dir: filepath.Join(t.TempDir(), "data"), stderr: t.Output(), printed: printed}
	if err := p.start(); err != nil {
		t.Fatal(err)
	}
	s := &testServer{t: t, address: p.address, own: p}
	t.Cleanup(s.stop)
	text, err := os.ReadFile(printed.Name())
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), "password")
	words := strings.Fields(rest)
	if len(words) == 0 {
		t.Fatalf("no password in %q", text)
	}
	return s, person{login: adminLogin, password: words[0]}
}

// The first administrator sees a warning on every screen until they have changed the printed password.
func TestPrintedPassword_WarnsUntilItIsChanged(t *testing.T) {
	s, admin := newServerWithPrintedPassword(t)
	v := signedIn(t, s, desk, admin)
	const notice = `main > .notice.warn a[href="/profile/security"]`
	for _, language := range []string{"en", "de", "fr", "it"} {
		v.setLanguage(language)
		v.do(chromedp.Reload())
		v.examine(view{name: "reminder in " + language, drawn: notice})
		if got := ask[string](v, `document.querySelector('main > .notice.warn').innerText`); !strings.Contains(got, v.text("printed.text")) {
			t.Errorf("%s: got %q", language, got)
		}
	}
	v.click(notice)
	v.until(`location.pathname === '/profile/security' && document.querySelector('input[name=old_password]')`)
	v.write(`input[name=old_password]`, admin.password)
	v.write(`input[name=password]`, "nine other words that nobody has printed")
	v.click(`form:has(input[name=old_password]) button[type=submit]`)
	v.until(`!document.querySelector('main > .notice.warn')`)
	v.do(chromedp.Reload())
	v.until(`document.querySelector('input[name=old_password]') && !document.querySelector('main > .notice.warn')`)
}
