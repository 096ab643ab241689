package treetest_test

import (
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"kontor/modules/app"
	"kontor/server/settings"
	"kontor/store/testenv"
)

// securityDocument returns a document about security, without line breaks within paragraphs.
func securityDocument(t *testing.T, name string) (lines, flowing string) {
	t.Helper()
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(data), strings.Join(strings.Fields(string(data)), " ")
}

// passageOf returns the text from one mark up to another.
func passageOf(t *testing.T, text, from, to string) string {
	t.Helper()
	_, rest, found := strings.Cut(text, from)
	part, _, ended := strings.Cut(rest, to)
	if !found || !ended {
		t.Fatalf("there is no passage from %q to %q", from, to)
	}
	return part
}

var (
	dottedCode   = regexp.MustCompile("`([a-z_]+(?:\\.[a-z_0-9]+)+)`")
	endpointCode = regexp.MustCompile("`((?:GET|POST|PUT|PATCH|DELETE) /[^` ]+)`")
)

// Settings, codes, actions and endpoints that the documents name exist.
func TestSecurityDocs_NameWhatExists(t *testing.T) {
	t.Chdir(testenv.Root())
	source := programSource(t)
	endpoints, err := os.ReadFile("testdata/endpoints.golden")
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]bool{}
	for line := range strings.Lines(string(endpoints)) {
		fields := strings.Fields(line)
		known[fields[0]+" "+fields[1]] = true
	}
	for _, s := range settings.All() {
		known[s.Name] = true
	}
	for _, document := range []string{"docs/security.md", "docs/asvs.md", "docs/access.md"} {
		_, text := securityDocument(t, document)
		for _, found := range dottedCode.FindAllStringSubmatch(text, -1) {
			if !known[found[1]] && !sourceFile.MatchString(found[1]) && !strings.Contains(source, `"`+found[1]+`"`) && !isName(found[1]) {
				t.Errorf("%s names %s, which does not exist", document, found[1])
			}
		}
		for _, found := range endpointCode.FindAllStringSubmatch(text, -1) {
			path, _, _ := strings.Cut(found[1], "?")
			if !known[path] && !strings.Contains(path, "…") {
				t.Errorf("%s names %s, which does not exist", document, path)
			}
		}
	}
}

// isName reports whether a text with dots is the name of a file of an installation, or of a program of others.
func isName(text string) bool {
	return slices.Contains([]string{"secret.key", "kontor.sock", "kontor.mark", "go.mod", "go.sum"}, text)
}

// Numbers in docs/security.md are the defaults of their settings.
func TestSecurityDocs_GiveTheDefaults(t *testing.T) {
	t.Chdir(testenv.Root())
	_, text := securityDocument(t, "docs/security.md")
	defaults := map[string]string{}
	for _, s := range settings.All() {
		defaults[s.Name] = s.Default
	}
	for name, sentence := range map[string]string{
		"auth.password_min_length":          "*Passwords* have %s to 128 characters",
		"auth.refresh_token_hours":          "A session lasts %s hours after its last refresh",
		"auth.sessions_max":                 "A user has at most %s sessions",
		"auth.cooling_off.free_attempts":    "| one user from one network (/32, /64) | %s |",
		"auth.mfa.grace_days":               "`auth.mfa.grace_days` (%s)",
		"rate_limits.concurrent_per_caller": "At most %s requests of one user, key or network run at once",
		"quotas.megabytes_per_user":         "records and %s MB",
	} {
		if want := fmt.Sprintf(sentence, defaults[name]); !strings.Contains(text, want) {
			t.Errorf("%s is %s, but docs/security.md does not say %q", name, defaults[name], want)
		}
	}
}

// The table of outgoing connections has all settings that name a target.
func TestSecurityDocs_ListOutgoingConnections(t *testing.T) {
	t.Chdir(testenv.Root())
	text, _ := securityDocument(t, "docs/security.md")
	table := passageOf(t, text, "## Outgoing connections", "\n## ")
	target := regexp.MustCompile(`([._]url|\.issuer|\.clamd)$`)
	for _, s := range settings.All() {
		if target.MatchString(s.Name) && !slices.Contains([]string{"server.base_url", "auth.mfa.issuer", "bank.terms_url", "bank.privacy_url"}, s.Name) && !strings.Contains(table, "| `"+s.Name+"` |") {
			t.Errorf("%s is missing", s.Name)
		}
	}
}

// The table of records has the types that the audit trail covers.
func TestSecurityDocs_ListProvenRecords(t *testing.T) {
	t.Chdir(testenv.Root())
	text, _ := securityDocument(t, "docs/security.md")
	listed, covered := map[string]bool{}, map[string]bool{}
	for line := range strings.Lines(passageOf(t, text, "| Type | Covered,", "Not covered at all")) {
		first, _, _ := strings.Cut(strings.TrimPrefix(line, "| "), " |")
		for _, found := range regexp.MustCompile("`([a-z_]+)`").FindAllStringSubmatch(first, -1) {
			listed[found[1]] = true
		}
	}
	for _, p := range app.Proofs() {
		covered[p.Type] = true
	}
	if !maps.Equal(listed, covered) {
		t.Errorf("the table has %v, covered are %v", slices.Sorted(maps.Keys(listed)), slices.Sorted(maps.Keys(covered)))
	}
}

// assuredEndpoints are the words of docs/security.md for the endpoints that need more than an active session, by the beginning of
// the name of the endpoint.
var assuredEndpoints = map[string]string{
	"customers.kyc_decide": "decisions about customers", "customers.kyc_confirm": "decisions about customers", "customers.kyc_refuse": "decisions about customers",
	"customers.take_cases": "taking cases", "privacy.relationship.set": "the end of a business relationship",
	"auth.end_session": "ending sessions of other users", "customers.kyc_submit": "submitting documents", "notifications.": "the local outbox",
	"rbac.roles.": "roles", "rbac.grants.": "grants", "rbac.rate_limits.": "rate limits", "rbac.record_types.": "record types", "rbac.reviews.": "grants", "auth.create_key": "API keys", "auth.revoke_key": "API keys",
	"screening.load": "loading and dropping lists of screening", "screening.drop": "loading and dropping lists of screening",
	"screening.decide": "decisions about hits of screening", "service_accounts.": "service accounts and their tokens", "users.credentials.create": "adding and deleting credentials",
	"users.credentials.delete": "adding and deleting credentials", "factors.": "second factors", "oidc.": "linked accounts",
	"users.roles": "the roles of a user", "users.invitations.": "invitations", "webhooks.": "webhooks and their secrets",
	"privacy.export": "export", "privacy.report": "report", "privacy.erase": "erasure of a person", "privacy.hold": "legal holds",
	"users.update": "the status of a user", "users.password": "passwords of others", "users.credentials.validate": "validating a further credential",
}

// The table of assurances names every endpoint that needs one.
func TestSecurityDocs_ListAssurances(t *testing.T) {
	t.Chdir(testenv.Root())
	text, _ := securityDocument(t, "docs/security.md")
	rows := map[string]string{}
	for line := range strings.Lines(passageOf(t, text, "| Assurance |", "\n\n")) {
		cells := strings.Split(line, "|")
		if len(cells) < 4 {
			continue
		}
		name := strings.NewReplacer("`", "", ", conditional", "?").Replace(strings.TrimSpace(cells[1]))
		rows[name] = cells[3]
	}
	data, err := os.ReadFile("testdata/endpoints.golden")
	if err != nil {
		t.Fatal(err)
	}
	assured := regexp.MustCompile(` (decision\??|fresh\??|second_factor\??) +([a-z_.]+)`)
	found := 0
	for _, row := range assured.FindAllStringSubmatch(string(data), -1) {
		found++
		words := ""
		for beginning, said := range assuredEndpoints {
			if strings.HasPrefix(row[2], beginning) {
				words = said
			}
		}
		if words == "" || !strings.Contains(rows[row[1]], words) {
			t.Errorf("%s needs %s, and the row does not say %q", row[2], row[1], words)
		}
	}
	if found < 40 {
		t.Errorf("%d endpoints need an assurance", found)
	}
}
