package app_test

import (
	"flag"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"

	"kontor/locales"
	"kontor/server/access"
	"kontor/server/apierr"
	"kontor/server/endpoint"
	"kontor/server/servertest"
	"kontor/store"
)

var update = flag.Bool("update", false, "refresh the golden file")

const golden = "../../testdata/endpoints.golden"

// roleNames maps the built-in roles to their names in the golden file.
var roleNames = map[string]string{access.Advisor: "advisor", access.Customer: "customer", access.Registrant: "registrant", access.Everyone: "everyone"}

func TestTable_MatchesTheGoldenFile(t *testing.T) {
	s := servertest.Start(t)
	var b strings.Builder
	for _, e := range s.Table() {
		var roles []string
		for _, id := range e.Roles {
			roles = append(roles, roleNames[id])
		}
		assurance := e.Assurance.Level()
		if e.Assurance.Condition() != "" {
			assurance += "?" // only some requests need it
		}
		fmt.Fprintf(&b, "%-6s %-58s %-34s %-8s %-14s %-30s %s\n", e.Method, e.Path, e.Access, e.Limit, assurance, e.Name, strings.Join(roles, " "))
	}
	if *update {
		if err := os.WriteFile(golden, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if b.String() != string(want) {
		t.Errorf("the table of endpoints has changed; run \"make golden\" and review the difference:\n%s", b.String())
	}
}

var pathName = regexp.MustCompile(`\{\w+\}`)

// withUnknownIDs replaces the parameters of a path with ids that do not exist.
func withUnknownIDs(path string) string { return pathName.ReplaceAllString(path, store.NewID()) }

func TestTable_RejectsAnonymousCallersAndUsersWithoutAGrant(t *testing.T) {
	s := servertest.Start(t)
	ungranted := s.User()
	for _, e := range s.Table() {
		t.Run(e.Key(), func(t *testing.T) {
			switch {
			case e.Access.IsPublic():
				return
			case e.Access.TakesAPIKey():
				expect(t, s.Anonymous(), e, 401, apierr.Unauthorized)
				expect(t, s.Anonymous().With("X-API-Key", "nobody-made-this-key"), e, 401, apierr.Unauthorized)
				expect(t, ungranted, e, 401, apierr.Unauthorized)
				return
			}
			expect(t, s.Anonymous(), e, 401, apierr.Unauthorized)
			expect(t, s.Anonymous().With("Authorization", "Bearer nonsense"), e, 401, apierr.Unauthorized)
			expect(t, s.Keyed(), e, 401, apierr.Unauthorized)
			if e.HeldByEveryone() {
				return
			}
			expect(t, ungranted, e, 403, apierr.NoAccess)
		})
	}
}

var catalogue = sync.OnceValues(locales.Load)

// expect checks that an endpoint returns the error in every language.
func expect(t *testing.T, c *servertest.Client, e endpoint.Endpoint, status int, kind apierr.Kind) {
	t.Helper()
	texts, err := catalogue()
	if err != nil {
		t.Fatal(err)
	}
	for _, lang := range locales.Languages() {
		answer := c.With("Accept-Language", lang).Do(e.Method, withUnknownIDs(e.Path), nil)
		if e.AuthZEN { // an error is a message
			if want := strconv.Quote(texts.Text(lang, "error."+kind.Code, nil)); answer.Status != status || answer.Body != want {
				t.Errorf("%s: got %d %s, want %d %s", lang, answer.Status, answer.Body, status, want)
			}
			continue
		}
		body := answer.JSON(t)
		if answer.Status != status || body["code"] != kind.Code || body["status"] != float64(status) || body["class"] != "business" {
			t.Errorf("%s: got %d %s, want %d %s", lang, answer.Status, answer.Body, status, kind.Code)
		}
		text := "error." + kind.Code
		if details, ok := body["details"].(map[string]any); ok {
			text += "." + details["reason"].(string)
		}
		if want := texts.Text(lang, text, nil); body["message"] != want || answer.Header.Get("Content-Language") != lang {
			t.Errorf("%s: got message %q in %q, want %q", lang, body["message"], answer.Header.Get("Content-Language"), want)
		}
	}
}

func TestTable_ListsTheAllowedMethods(t *testing.T) {
	s := servertest.Start(t)
	methods := map[string]map[string]bool{}
	for _, e := range s.Table() {
		if methods[e.Path] == nil {
			methods[e.Path] = map[string]bool{}
		}
		methods[e.Path][e.Method] = true
	}
	for path, known := range methods {
		for _, method := range []string{"GET", "POST", "PUT", "PATCH", "DELETE"} {
			if known[method] {
				continue
			}
			answer := s.Anonymous().Do(method, withUnknownIDs(path), nil)
			if answer.Status != 405 {
				t.Errorf("%s %s: got %d %s, want 405", method, path, answer.Status, answer.Body)
			}
			for allowed := range known {
				if !strings.Contains(answer.Header.Get("Allow"), allowed) {
					t.Errorf("%s %s: Allow is %q, it lacks %s", method, path, answer.Header.Get("Allow"), allowed)
				}
			}
		}
	}
}

func TestCatalogue_HasTextsInEveryLanguage(t *testing.T) {
	texts, err := locales.Load()
	if err != nil {
		t.Fatal(err)
	}
	for _, kind := range apierr.All() {
		for _, lang := range locales.Languages() {
			if !texts.Has(lang, "error."+kind.Code) {
				t.Errorf("no file in locales/%s has the text error.%s", lang, kind.Code)
			}
		}
	}
}
