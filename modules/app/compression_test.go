package app_test

import (
	"io"
	"net/http"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"kontor/server/access"
	"kontor/server/servertest"
)

// secretMember matches the names of members that are secrets, or addresses that are.
var secretMember = regexp.MustCompile(`(^|_)(token|secret|password|otp|codes?|recovery|url|uri|challenge|options|text|html)$|^key$|private`)

// harmless are members whose names match, but whose values are no secrets.
var harmless = map[string]bool{"error_code": true, "postal_code": true, "link_text": true, "link_url": true}

// Rows whose answers have members with the names of secrets are never compressed.
func TestCompression_NoAnswerWithSecrets(t *testing.T) {
	s := servertest.Start(t)
	compressible := 0
	for _, row := range s.Table() {
		if !row.Compressible() {
			continue
		}
		compressible++
		for _, name := range memberNames(row.Handle.Out, map[reflect.Type]bool{}) {
			if secretMember.MatchString(name) && !harmless[name] {
				t.Errorf("%s may be compressed and has the member %s: set Compression, or add it to harmless", row.Name, name)
			}
		}
	}
	if compressible < 30 {
		t.Errorf("only %d rows may be compressed", compressible)
	}
}

// memberNames returns the names of all members of a type's JSON.
func memberNames(t reflect.Type, seen map[reflect.Type]bool) (names []string) {
	for t != nil && (t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice || t.Kind() == reflect.Map || t.Kind() == reflect.Array) {
		t = t.Elem()
	}
	if t == nil || t.Kind() != reflect.Struct || seen[t] {
		return nil
	}
	seen[t] = true
	for field := range t.Fields() {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		if name == "-" {
			continue
		}
		if name != "" {
			names = append(names, name)
		}
		names = append(names, memberNames(field.Type, seen)...)
	}
	return names
}

// Secrets that are shown once are not compressed, even for a client that accepts nothing else.
func TestCompression_NeverTouchesSecretsShownOnce(t *testing.T) {
	s := servertest.Start(t)
	forced := []string{"Accept-Encoding", "zstd, gzip, identity;q=0"}
	admin := s.Admin().With(forced...)
	account := admin.Create("/v1/service-accounts", map[string]any{"name": "Back office"})
	for path, body := range map[string]any{
		"/v1/api-keys": map[string]any{"name": strings.Repeat("k", 60)},
		"/v1/service-accounts/" + account + "/tokens": map[string]any{"name": "t"},
		"/v1/users/" + admin.UserID + "/factors":      map[string]any{"type": "totp", "name": "phone"},
		"/authenticate/passkey":                       map[string]any{},
	} {
		if answer := admin.Do("POST", path, body); answer.Header.Get("Content-Encoding") != "" || strings.Contains(answer.Header.Get("Vary"), "Accept-Encoding") {
			t.Errorf("%s: %d %v", path, answer.Status, answer.Header)
		}
	}
	for _, path := range []string{"/v1/notifications/deliveries?limit=100", "/v1/profile", "/readyz", "/authenticate/methods"} {
		if answer := admin.Do("GET", path, nil).Expect(t, http.StatusOK); answer.Header.Get("Content-Encoding") != "" {
			t.Errorf("%s: %v", path, answer.Header)
		}
	}
}

// inflate returns a body without its content coding.
func inflate(t *testing.T, answer servertest.Response) string {
	t.Helper()
	var reader io.Reader
	var err error
	switch coding := answer.Header.Get("Content-Encoding"); coding {
	case "gzip":
		reader, err = gzip.NewReader(strings.NewReader(answer.Body))
	case "zstd":
		reader, err = zstd.NewReader(strings.NewReader(answer.Body))
	case "":
		return answer.Body
	default:
		t.Fatalf("unexpected coding %s", coding)
	}
	if err != nil {
		t.Fatal(err)
	}
	plain, err := io.ReadAll(reader)
	if err != nil {
		t.Fatal(err)
	}
	return string(plain)
}

func TestCompression_OfLists(t *testing.T) {
	s := servertest.Start(t)
	advisor := s.Admin()
	const path = "/v1/rbac/record-types?limit=100"
	plain := advisor.With("Accept-Encoding", "identity").Do("GET", path, nil).Expect(t, http.StatusOK)
	if plain.Header.Get("Content-Encoding") != "" || plain.Header.Get("X-Padding") != "" || !strings.Contains(plain.Header.Get("Vary"), "Accept-Encoding") {
		t.Errorf("plain: %v", plain.Header)
	}
	for header, coding := range map[string]string{"gzip, deflate, br, zstd": "zstd", "gzip": "gzip", "zstd;q=0.1, gzip": "gzip", "br": "", "gzip;q=0": ""} {
		answer := advisor.With("Accept-Encoding", header).Do("GET", path, nil).Expect(t, http.StatusOK)
		if answer.Header.Get("Content-Encoding") != coding || inflate(t, answer) != plain.Body {
			t.Errorf("%s: %v", header, answer.Header)
		}
		if coding != "" && (len(answer.Body) > len(plain.Body)/2 || answer.Header.Get("X-Padding") == "") {
			t.Errorf("%s: %d of %d bytes, %v", header, len(answer.Body), len(plain.Body), answer.Header)
		}
		head := advisor.With("Accept-Encoding", header).Do("HEAD", path, nil).Expect(t, http.StatusOK)
		if head.Body != "" || head.Header.Get("Content-Encoding") != coding || head.Header.Get("Content-Length") != answer.Header.Get("Content-Length") {
			t.Errorf("HEAD %s: %v, want %v", header, head.Header, answer.Header)
		}
	}
	if small := advisor.With("Accept-Encoding", "gzip").Do("GET", "/v1/chats", nil); small.Header.Get("Content-Encoding") != "" {
		t.Errorf("an answer of %d bytes is compressed", len(small.Body))
	}
	if table := advisor.With("Accept-Encoding", "gzip", "Accept", "text/csv").Do("GET", path, nil); table.Header.Get("Content-Encoding") != "" {
		t.Errorf("a stream is compressed: %v", table.Header)
	}
	if wrong := advisor.With("Accept-Encoding", "gzip, identity;q=0").Do("GET", "/v1/customers/none", nil); wrong.Header.Get("Content-Encoding") != "" {
		t.Errorf("an error is compressed: %v", wrong.Header)
	}
}

// The tag of a compressed record works in every conditional request.
func TestCompression_TagsOfCompressedRecords(t *testing.T) {
	s := servertest.Start(t)
	advisor := s.User(access.Advisor)
	body := map[string]any{"first_name": "Anna", "last_name": "Keller", "email": "anna@example.ch", "metadata": map[string]any{"note": strings.Repeat("long ", 400)}}
	path := "/v1/customers/" + advisor.Create("/v1/customers", body)
	packed := advisor.With("Accept-Encoding", "gzip").Do("GET", path, nil).Expect(t, http.StatusOK)
	plain := advisor.With("Accept-Encoding", "identity").Do("GET", path, nil).Expect(t, http.StatusOK)
	tag := packed.Header.Get("ETag")
	if !strings.HasSuffix(tag, `-gzip"`) || plain.Header.Get("ETag") == tag {
		t.Fatalf("the tags are %s and %s", tag, plain.Header.Get("ETag"))
	}
	for _, condition := range []string{tag, "W/" + tag, plain.Header.Get("ETag"), `"other", ` + tag} {
		again := advisor.With("Accept-Encoding", "gzip", "If-None-Match", condition).Do("GET", path, nil).Expect(t, http.StatusNotModified)
		if again.Header.Get("Content-Encoding") != "" || again.Body != "" || !strings.Contains(condition, again.Header.Get("ETag")) {
			t.Errorf("%s: %v", condition, again.Header)
		}
	}
	advisor.With("If-Match", tag).Do("PUT", path, body).Expect(t, http.StatusOK)
	advisor.With("If-Match", tag).Do("PUT", path, body).Expect(t, http.StatusPreconditionFailed)
	advisor.With("Accept-Encoding", "gzip", "If-None-Match", tag).Do("GET", path, nil).Expect(t, http.StatusOK)
}
