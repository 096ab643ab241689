package sdk_test

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/gofiber/fiber/v2"

	"kontor/server/sdk"
)

func sources(release string) sdk.Options {
	file := func(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(text)} }
	return sdk.Options{
		Release: release,
		Go:      fstest.MapFS{"client.go": file("package client\n"), "client_test.go": file("package client\n"), "example/main.go": file("package main\n")},
		Script: fstest.MapFS{
			"package.json": file(`{"name": "kontor-client", "version": "0.1.0", "types": "a", "default": "b"}`),
			"README.md":    file("# kontor-client\n"), "dist/index.js": file("export {};\n"), "dist/index.d.ts": file("export {};\n"),
		},
		License: []byte("a licence\n"),
	}
}

// ask sends a request to a server that has nothing but the clients.
func ask(t *testing.T, o sdk.Options, method, path string, headers ...string) (*http.Response, []byte) {
	t.Helper()
	served := sdk.New(o)
	app := fiber.New()
	app.Use(func(c *fiber.Ctx) error {
		if served.Serve(c, path) { // the path as it was sent
			return nil
		}
		return fiber.ErrNotFound
	})
	request := httptest.NewRequest(method, "/", nil)
	for i := 0; i < len(headers); i += 2 {
		request.Header.Set(headers[i], headers[i+1])
	}
	answer, err := app.Test(request)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer, body
}

func TestServe_PacksTheNpmPackageInTheVersionOfTheProgram(t *testing.T) {
	_, body := ask(t, sources("1.2.3"), http.MethodGet, "/sdk/kontor-client.tgz")
	unpacked, err := gzip.NewReader(bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	for archive := tar.NewReader(unpacked); ; {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		data, err2 := io.ReadAll(archive)
		if err := errors.Join(err, err2); err != nil {
			t.Fatal(err)
		}
		files[header.Name] = string(data)
	}
	want := []string{"package/LICENSE", "package/README.md", "package/dist/index.d.ts", "package/dist/index.js", "package/package.json"}
	if got := slices.Sorted(maps.Keys(files)); !slices.Equal(got, want) {
		t.Errorf("the package contains %v, want %v", got, want)
	}
	if got, want := files["package/package.json"], `{"name": "kontor-client", "version": "1.2.3", "types": "a", "default": "b"}`; got != want {
		t.Errorf("package.json is %s, want %s", got, want)
	}
}

func TestServe_IsAProxyOfOneGoModule(t *testing.T) {
	const at = "/sdk/go/kontor.local/client/@v/"
	for path, want := range map[string]string{
		at + "list":                           "v1.2.3\n",
		at + "v1.2.3.mod":                     "module kontor.local/client\n\ngo 1.26\n",
		at + "v1.2.3.info":                    `{"Version":"v1.2.3","Time":"2000-01-01T00:00:00Z"}`,
		"/sdk/go/kontor.local/client/@latest": `{"Version":"v1.2.3","Time":"2000-01-01T00:00:00Z"}`,
	} {
		if answer, body := ask(t, sources("v1.2.3"), http.MethodGet, path); answer.StatusCode != http.StatusOK || string(body) != want {
			t.Errorf("%s: got %d %q, want %q", path, answer.StatusCode, body, want)
		}
	}
	_, body := ask(t, sources("1.2.3"), http.MethodGet, at+"v1.2.3.zip")
	archive, err := zip.NewReader(bytes.NewReader(body), int64(len(body)))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, f := range archive.File {
		names = append(names, strings.TrimPrefix(f.Name, "kontor.local/client@v1.2.3/"))
	}
	if want := []string{"client.go", "LICENSE", "go.mod"}; !slices.Equal(names, want) {
		t.Errorf("the module contains %v, want %v", names, want)
	}
}

// Caches of npm and Go keep a version for ever: other sources must have another version.
func TestVersion_ChangesWithTheSourcesOfABuildWithoutARelease(t *testing.T) {
	version := func(o sdk.Options) string {
		_, body := ask(t, o, http.MethodGet, "/sdk/go/kontor.local/client/@v/list")
		return strings.TrimPrefix(strings.TrimSpace(string(body)), "v")
	}
	first, changed := sources(""), sources("")
	changed.Go.(fstest.MapFS)["client.go"].Data = []byte("package client // changed\n")
	a, b := version(first), version(changed)
	if !strings.HasPrefix(a, "0.0.0-dev-") || a == b || a != version(sources("")) {
		t.Errorf("got %s, and %s for other sources", a, b)
	}
	for _, release := range []string{"1.2", "01.2.3", "1.2.3/../x", "latest", "1.2.3\n"} {
		if got := version(sources(release)); got != a {
			t.Errorf("the release %q has the version %q, want %q", release, got, a)
		}
	}
	for _, release := range []string{"0.1.0", "10.20.30-rc.1"} {
		if got := version(sources(release)); got != release {
			t.Errorf("the release %q has the version %q", release, got)
		}
	}
}

func TestServe_HasHeadersForCachesAndOtherOrigins(t *testing.T) {
	answer, body := ask(t, sources("1.2.3"), http.MethodGet, "/sdk/kontor-client.js", "Origin", "https://shop.example")
	for name, want := range map[string]string{
		"Content-Type": "text/javascript; charset=utf-8", "X-Content-Type-Options": "nosniff", "Cache-Control": "no-cache",
		"Access-Control-Allow-Origin": "*", "Cross-Origin-Resource-Policy": "cross-origin", "Access-Control-Allow-Credentials": "",
	} {
		if got := answer.Header.Get(name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	tag := answer.Header.Get("ETag")
	if again, rest := ask(t, sources("1.2.3"), http.MethodGet, "/sdk/kontor-client.js", "If-None-Match", tag); again.StatusCode != http.StatusNotModified || len(rest) > 0 {
		t.Errorf("the same tag %s: got %d %q", tag, again.StatusCode, rest)
	}
	if head, rest := ask(t, sources("1.2.3"), http.MethodHead, "/sdk/kontor-client.js"); head.StatusCode != http.StatusOK || len(rest) > 0 || head.ContentLength != int64(len(body)) {
		t.Errorf("HEAD: got %d, length %d", head.StatusCode, head.ContentLength)
	}
}

// Another module must be "not found", so that go asks the next proxy; no path may leave the files.
func TestServe_AnswersNoOtherPath(t *testing.T) {
	for _, path := range []string{
		"/sdk", "/sdk/", "/sdk/go", "/sdk/go/", "/sdk/go/golang.org/x/text/@v/list", "/sdk/go/golang.org/x/text/@latest",
		"/sdk/go/kontor.local/client/@v/", "/sdk/go/kontor.local/client/@v/v9.9.9.zip", "/sdk/go/kontor.local/client/v2/@v/list",
		"/sdk/go/kontor.local/client/@v/../@v/list", "/sdk/go/kontor.local%2fclient/@v/list", "/sdk/go/Kontor.local/client/@v/list",
		"/sdk/go/kontor.local/client/@v/LIST", "/sdk/go/kontor.local/client/@v/list/", "/sdk//kontor-client.js", "/sdk/kontor-client/",
		"/sdk/kontor-client/../kontor-client.js", "/sdk/kontor-client/%2e%2e/%2e%2e/etc/passwd", "/sdk/kontor-client/index.d.ts",
		"/sdk/kontor-client/package.json", "/sdk/kontor-client.tgz%00", "/SDK/kontor-client.js", "/v1/sdk/kontor-client.js",
		"/sdk/" + strings.Repeat("a/", 2000),
	} {
		if answer, _ := ask(t, sources("1.2.3"), http.MethodGet, path); answer.StatusCode != http.StatusNotFound {
			t.Errorf("%.80s: got %d", path, answer.StatusCode)
		}
	}
}
