package web_test

import (
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"io/fs"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/gofiber/fiber/v2"

	"kontor/web"
)

func newApp(t *testing.T, site *web.Site) *fiber.App {
	t.Helper()
	app := fiber.New()
	app.Use(func(c *fiber.Ctx) error {
		if site.Serve(c, c.Path()) {
			return nil
		}
		return fiber.ErrNotFound
	})
	return app
}

func newSite(t *testing.T) *web.Site {
	t.Helper()
	return web.New(web.Options{})
}

func get(t *testing.T, app *fiber.App, path string, headers ...string) (*http.Response, string) {
	t.Helper()
	return ask(t, app, http.MethodGet, path, headers...)
}

func ask(t *testing.T, app *fiber.App, method, path string, headers ...string) (*http.Response, string) {
	t.Helper()
	request := httptest.NewRequest(method, path, nil)
	for i := 0; i+1 < len(headers); i += 2 {
		request.Header.Set(headers[i], headers[i+1])
	}
	answer, err := app.Test(request, -1)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer, string(body)
}

var assetAddress = regexp.MustCompile(`/assets/[0-9a-f]{12}/[\w./-]+`)

func TestServe_ReturnsThePageForTheConsolesAddresses(t *testing.T) {
	app := newApp(t, newSite(t))
	for _, path := range []string{"/", "/signin", "/customers", "/customers/0193a000-0000-7000-8000-000000000001/kyc", "/admin/audit"} {
		answer, body := get(t, app, path)
		if answer.StatusCode != http.StatusOK || !strings.Contains(body, `id="console"`) {
			t.Errorf("%s: got %d", path, answer.StatusCode)
		}
		if got := answer.Header.Get("Cache-Control"); got != "no-cache" {
			t.Errorf("%s: Cache-Control is %q", path, got)
		}
		if got := answer.Header.Get("Content-Security-Policy"); !strings.HasPrefix(got, "default-src 'self'") {
			t.Errorf("%s: Content-Security-Policy is %q", path, got)
		}
	}
}

func TestServe_DoesNotAnswerOtherAddresses(t *testing.T) {
	app := newApp(t, newSite(t))
	for _, path := range []string{"/v1/customers", "/healthz", "/index.html", "/signin/x", "/customersx", "/assets/x/nothing.js", "/assets/../web.go"} {
		if answer, _ := get(t, app, path); answer.StatusCode != http.StatusNotFound {
			t.Errorf("%s: got %d, want 404", path, answer.StatusCode)
		}
	}
}

func TestServe_HashedFilesAreImmutable(t *testing.T) {
	app := newApp(t, newSite(t))
	_, page := get(t, app, "/")
	addresses := assetAddress.FindAllString(page, -1)
	if len(addresses) < 4 {
		t.Fatalf("the page names %d files, want the style sheet, the modules and the icon", len(addresses))
	}
	for _, address := range addresses {
		answer, _ := get(t, app, address)
		if answer.StatusCode != http.StatusOK {
			t.Errorf("%s: got %d", address, answer.StatusCode)
		}
		if got := answer.Header.Get("Cache-Control"); !strings.Contains(got, "immutable") {
			t.Errorf("%s: Cache-Control is %q", address, got)
		}
		if answer.Header.Get("Content-Type") == "" {
			t.Errorf("%s: no Content-Type", address)
		}
	}
}

// Browsers identify the worker by its address, so that must not change with the content; changes must be noticed.
func TestServe_WorkerHasAFixedAddress(t *testing.T) {
	answer, body := get(t, newApp(t, newSite(t)), "/session-worker.js")
	if answer.StatusCode != http.StatusOK || answer.Header.Get("Cache-Control") != "no-cache" || !strings.HasPrefix(answer.Header.Get("Content-Type"), "text/javascript") {
		t.Errorf("got %d, %v", answer.StatusCode, answer.Header)
	}
	if !strings.Contains(body, "/v1/token/refresh") {
		t.Error("the body is not the worker")
	}
}

func TestServe_FilesOfAnEarlierVersionAreNotCached(t *testing.T) {
	answer, _ := get(t, newApp(t, newSite(t)), "/assets/000000000000/app/main.js")
	if answer.StatusCode != http.StatusOK || answer.Header.Get("Cache-Control") != "no-store" {
		t.Errorf("got %d, %q", answer.StatusCode, answer.Header.Get("Cache-Control"))
	}
}

func TestServe_NegotiatesGzip(t *testing.T) {
	app := newApp(t, newSite(t))
	_, plain := get(t, app, "/")
	for header, packed := range map[string]bool{"gzip": true, "br, gzip;q=0.5": true, "*": true, "gzip;q=0": false, "br": false, "": false} {
		answer, body := get(t, app, "/", "Accept-Encoding", header)
		if got := answer.Header.Get("Content-Encoding") == "gzip"; got != packed {
			t.Errorf("%q: compressed is %v", header, got)
		}
		if !packed {
			continue
		}
		reader, err := gzip.NewReader(strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		if unpacked, err := io.ReadAll(reader); err != nil || string(unpacked) != plain {
			t.Errorf("%q: the compressed page differs: %v", header, err)
		}
		if answer.Header.Get("Vary") != "Accept-Encoding" {
			t.Errorf("%q: Vary is %q", header, answer.Header.Get("Vary"))
		}
	}
}

func TestServe_UnchangedPageReturns304(t *testing.T) {
	app := newApp(t, newSite(t))
	first, _ := get(t, app, "/", "Accept-Encoding", "gzip")
	etag := first.Header.Get("ETag")
	for _, header := range []string{etag, "W/" + etag, `"other", ` + etag, "*"} {
		answer, body := get(t, app, "/", "Accept-Encoding", "gzip", "If-None-Match", header)
		if answer.StatusCode != http.StatusNotModified || body != "" {
			t.Errorf("%s: got %d with %d bytes", header, answer.StatusCode, len(body))
		}
	}
	if answer, _ := get(t, app, "/", "If-None-Match", etag); answer.StatusCode != http.StatusOK {
		t.Errorf("the plain page has the ETag of the compressed one")
	}
}

func TestServe_HeadReturnsNoBody(t *testing.T) {
	answer, body := ask(t, newApp(t, newSite(t)), http.MethodHead, "/")
	if answer.StatusCode != http.StatusOK || body != "" || answer.Header.Get("ETag") == "" {
		t.Errorf("got %d, %d bytes, ETag %q", answer.StatusCode, len(body), answer.Header.Get("ETag"))
	}
}

// The first load consists of the page, the files that it names, the texts and the first screen.
func TestFirstLoad_IsUnder120KilobytesIn12Requests(t *testing.T) {
	app := newApp(t, newSite(t))
	_, page := get(t, app, "/")
	named := assetAddress.FindAllString(page, -1)
	base := named[0][:len("/assets/012345678901/")]
	for first, names := range map[string][]string{
		"sign-in":  {"app/screens/signin.js", "i18n/fr.json", "i18n/security/fr.json"},
		"overview": {"app/screens/overview.js", "i18n/fr.json"},
		"home":     {"app/screens/home.js", "i18n/fr.json", "i18n/home/fr.json"},
	} {
		addresses := append([]string{"/", base + "style/chevron.svg"}, named...)
		for _, name := range names {
			addresses = append(addresses, base+name)
		}
		slices.Sort(addresses)
		addresses = slices.Compact(addresses)
		total := 0
		for _, address := range addresses {
			answer, body := get(t, app, address, "Accept-Encoding", "gzip")
			if answer.StatusCode != http.StatusOK {
				t.Fatalf("%s: got %d", address, answer.StatusCode)
			}
			total += len(body)
		}
		if most := 120_000; total > most || len(addresses) > 12 {
			t.Errorf("%s: %d bytes in %d requests, want at most %d in 12", first, total, len(addresses), most)
		}
		t.Logf("%s: %d bytes in %d requests", first, total, len(addresses))
	}
}

func TestBank_IsInThePage(t *testing.T) {
	app := newApp(t, web.New(web.Options{Bank: web.Bank{Name: `</script> & Co.`, LogoName: "style/logo.svg", Logo: []byte("<svg/>"), TermsURL: "https://bank.example/terms"}}))
	_, page := get(t, app, "/")
	if want := `{"name":"\u003c/script\u003e \u0026 Co.","terms":"https://bank.example/terms","logo":"style/logo.svg"}`; !strings.Contains(page, want) {
		t.Errorf("the page lacks %s: %s", want, page[:600])
	}
	base := assetAddress.FindString(page)[:len("/assets/012345678901/")]
	if !strings.Contains(page, "<title>&lt;/script&gt; &amp; Co.</title>") || !strings.Contains(page, `rel="icon" href="`+base+`style/logo.svg"`) {
		t.Errorf("the page has another title or icon: %s", page[:600])
	}
	for _, path := range []string{base + "style/logo.svg", "/favicon.ico"} {
		answer, body := get(t, app, path)
		policy := answer.Header.Get("Content-Security-Policy")
		if body != "<svg/>" || answer.Header.Get("Content-Type") != "image/svg+xml" || !strings.HasPrefix(policy, "default-src 'none'") || !strings.HasSuffix(policy, "sandbox") {
			t.Errorf("%s: %d %q with the policy %s", path, answer.StatusCode, body, policy)
		}
	}
}

func TestDev_ServesAChangedFileOnReload(t *testing.T) {
	files := fstest.MapFS{
		"index.html": {Data: []byte(`<div id="console">{{base}}</div>`)}, "screens.json": {Data: []byte(`[{"path":"/"}]`)}, "app/main.js": {Data: []byte("1")},
		"style/main.css": {Data: []byte("a{}")}, "i18n/en.json": {Data: []byte("{}")}, "vendor/x.mjs": {Data: []byte("1")},
	}
	site, err := web.NewDev(files, web.Options{})
	if err != nil {
		t.Fatal(err)
	}
	app := newApp(t, site)
	_, before := get(t, app, "/")
	files["app/main.js"] = &fstest.MapFile{Data: []byte("2")}
	_, after := get(t, app, "/")
	if before == after {
		t.Error("the page still names the old files")
	}
}

func TestVendor_FilesMatchTheirChecksums(t *testing.T) {
	list, err := os.ReadFile("vendor/VENDOR.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := regexp.MustCompile(`(?m)^\| ([\w./-]+) \| ([0-9a-f]{64}) \|$`).FindAllStringSubmatch(string(list), -1)
	named := map[string]bool{}
	for _, row := range rows {
		named[row[1]] = true
		body, err := os.ReadFile(filepath.Join("vendor", row[1]))
		if err != nil {
			t.Error(err)
			continue
		}
		if sum := sha256.Sum256(body); hex.EncodeToString(sum[:]) != row[2] {
			t.Errorf("%s: got the checksum %x, want %s", row[1], sum, row[2])
		}
	}
	files, err := filepath.Glob("vendor/*.*s*")
	if err != nil {
		t.Fatal(err)
	}
	packed, err := filepath.Glob("vendor/explorer/*.gz")
	if err != nil {
		t.Fatal(err)
	}
	fonts, err := filepath.Glob("vendor/*.woff2")
	if err != nil {
		t.Fatal(err)
	}
	files = append(files, append(packed, fonts...)...)
	for _, file := range files {
		if !named[strings.TrimPrefix(filepath.ToSlash(file), "vendor/")] {
			t.Errorf("%s is not listed", file)
		}
	}
}

// texts returns all texts of a language: those of the first screens, and the parts in the folders. No text is in two files.
func texts(t *testing.T, language string) map[string]string {
	t.Helper()
	parts, err := filepath.Glob("i18n/*/" + language + ".json")
	if err != nil {
		t.Fatal(err)
	}
	table := map[string]string{}
	for _, name := range append(parts, "i18n/"+language+".json") {
		part := map[string]string{}
		readJSON(t, name, &part)
		for key, text := range part {
			if table[key] != "" {
				t.Errorf("%s: %s is in another file too", name, key)
			}
			table[key] = text
		}
	}
	return table
}

func TestTexts_AreCompleteInEveryLanguage(t *testing.T) {
	english := texts(t, "en")
	placeholder := regexp.MustCompile(`\{\w+\}`)
	placeholders := func(text string) []string {
		found := placeholder.FindAllString(text, -1)
		slices.Sort(found)
		return slices.Compact(found)
	}
	for _, language := range []string{"de", "fr", "it"} {
		table := texts(t, language)
		for key, text := range english {
			if table[key] == "" {
				t.Errorf("%s: %s is missing", language, key)
			} else if !slices.Equal(placeholders(text), placeholders(table[key])) {
				t.Errorf("%s: %s has the placeholders %v, want %v", language, key, placeholders(table[key]), placeholders(text))
			}
		}
		for key := range table {
			if _, ok := english[key]; !ok {
				t.Errorf("%s: %s is not in English", language, key)
			}
		}
		if language == "de" && strings.Contains(strings.Join(slices.Collect(maps.Values(table)), " "), "ß") {
			t.Error("de: Swiss German has no ß")
		}
	}
}

// French has a narrow no-break space inside of quotation marks and before high punctuation. Buttons in Italian are in the imperative.
func TestTexts_FollowTheRulesOfTheirLanguage(t *testing.T) {
	badFrench := regexp.MustCompile(`«[^\x{202f}]|[^\x{202f}]»|[ \x{a0}][:;?!]|[\pL})][:;?!](?:$|[ \n<])`)
	for key, text := range texts(t, "fr") {
		if found := badFrench.FindString(text); found != "" {
			t.Errorf("fr: %s has %q: use a narrow no-break space (U+202F)", key, found)
		}
	}
	infinitive := regexp.MustCompile(`^\pLu\pL+(?:are|ere|ire|orre)\b`)
	names := regexp.MustCompile(`^(?:permission|task_category|scope)\.`) // names of rights and kinds, not of buttons
	for key, text := range texts(t, "it") {
		word := infinitive.FindString(text)
		if word != "" && word != "Genere" && !names.MatchString(key) && !strings.HasSuffix(text, "?") {
			t.Errorf("it: %s begins with the infinitive %q: use the imperative", key, word)
		}
	}
}

func TestTexts_KeysInTheModulesExist(t *testing.T) {
	english := texts(t, "en")
	used := regexp.MustCompile(`\bt\('([a-z_]+(?:\.[\w]+)*)'`)
	err := filepath.WalkDir("app", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		body, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		for _, found := range used.FindAllStringSubmatch(string(body), -1) {
			if english[found[1]] == "" && english[found[1]+".other"] == "" {
				t.Errorf("%s: there is no text %q", name, found[1])
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// Modules insert values as text and style with classes. The content security policy rejects anything else.
func TestModules_NeverMakeMarkupFromText(t *testing.T) {
	forbidden := regexp.MustCompile(`innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function|dangerouslySetInnerHTML|style="`)
	err := filepath.WalkDir("app", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		body, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		if found := forbidden.FindString(string(body)); found != "" {
			t.Errorf("%s uses %s", name, found)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// Browsers that open an unknown address get the console, which says that the page does not exist.
func TestServe_UnknownAddressIsAPageForBrowsers(t *testing.T) {
	app := newApp(t, newSite(t))
	const browser = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"
	page, _ := get(t, app, "/")
	answer, body := get(t, app, "/nowhere", "Accept", browser, "If-None-Match", page.Header.Get("ETag"))
	if answer.StatusCode != http.StatusNotFound || !strings.Contains(body, `id="console"`) || answer.Header.Get("ETag") != "" {
		t.Errorf("got %d, ETag %q", answer.StatusCode, answer.Header.Get("ETag"))
	}
	for path, accept := range map[string]string{"/nowhere": "*/*", "/v1": browser, "/v1/nowhere": browser, "/assets/x/nothing.js": browser} {
		if answer, body := get(t, app, path, "Accept", accept); answer.StatusCode != http.StatusNotFound || strings.Contains(body, "console") {
			t.Errorf("%s: got %d and the page", path, answer.StatusCode)
		}
	}
}
