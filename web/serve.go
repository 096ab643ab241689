package web

import (
	"bytes"
	"net/http"
	"regexp"
	"strings"

	"github.com/gofiber/fiber/v2"
)

// staticImport finds `import … from './x.js'`, `export … from './x.js'` and `import './x.js'`, but no import().
var staticImport = regexp.MustCompile(`(?m)^\s*(?:import|export)\b[^'"()]*['"](\.[^'"]+)['"]`)

// policy admits what lies on our own origin and nothing else: no inline script or style, no frame, no plugin.
const policy = "default-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'; object-src 'none'"

const (
	forEver    = "public, max-age=31536000, immutable"
	askAgain   = "no-cache"
	notForLong = "no-store"
)

// workerPath is where the worker that refreshes tokens lies. Its address must not change with its content: it is what
// browsers know the worker by.
const workerPath = "/session-worker.js"

// Serve answers a GET or HEAD request when its path is the console's; otherwise it does nothing and reports false.
func (s *Site) Serve(c *fiber.Ctx, path string) bool {
	if rest, ok := strings.CutPrefix(path, "/assets/"); ok {
		return s.serveAsset(c, rest)
	}
	if rest, ok := strings.CutPrefix(path, docsPath); ok && (rest == "" || rest[0] == '/' && rest != "/") {
		return s.serveDocs(c, strings.TrimPrefix(rest, "/"))
	}
	if path == workerPath {
		s.write(c, s.state(false).assets["app/session-worker.js"], askAgain)
		return true
	}
	if path == "/favicon.ico" { // Browsers ask for it on pages that name no icon, such as an answer of the API.
		s.write(c, s.state(false).assets["style/mark.svg"], askAgain)
		return true
	}
	state := s.state(true)
	if !state.screens.MatchString(path) {
		return false
	}
	c.Set("Permissions-Policy", "camera=(self), microphone=(), geolocation=()")
	s.write(c, state.index, askAgain)
	return true
}

// serveAsset answers /assets/<hash>/<name>. A hash of an earlier version still finds the file of its name, because a
// page opened before an upgrade goes on loading screens; only it must not be kept.
func (s *Site) serveAsset(c *fiber.Ctx, rest string) bool {
	hash, name, _ := strings.Cut(rest, "/")
	state := s.state(false)
	asset, ok := state.assets[name]
	if !ok {
		return false
	}
	caching := forEver
	if hash != state.hash {
		caching = notForLong
	}
	if s.dev {
		caching = askAgain
	}
	s.write(c, asset, caching)
	return true
}

func (s *Site) write(c *fiber.Ctx, f file, caching string) {
	body, etag := f.plain, f.etag
	if f.gzip != nil {
		c.Vary(fiber.HeaderAcceptEncoding)
		if TakesGzip(acceptEncoding(c)) {
			body, etag = f.gzip, strings.TrimSuffix(f.etag, `"`)+`-gzip"`
			c.Set(fiber.HeaderContentEncoding, "gzip")
		}
	}
	c.Set(fiber.HeaderContentType, f.kind)
	c.Set(fiber.HeaderCacheControl, caching)
	c.Set(fiber.HeaderETag, etag)
	c.Set(fiber.HeaderContentSecurityPolicy, policy)
	c.Set("Cross-Origin-Opener-Policy", "same-origin")
	c.Set(fiber.HeaderXContentTypeOptions, "nosniff")
	c.Set(fiber.HeaderReferrerPolicy, "no-referrer")
	if matches(c.Get(fiber.HeaderIfNoneMatch), etag) {
		c.Response().Header.Del(fiber.HeaderContentEncoding)
		c.Status(http.StatusNotModified)
		return
	}
	c.Status(http.StatusOK).Response().SetBodyRaw(body) // The engine leaves the body out for HEAD.
}

// acceptEncoding joins the lines of the header, which are one list.
func acceptEncoding(c *fiber.Ctx) string {
	return string(bytes.Join(c.Request().Header.PeekAll(fiber.HeaderAcceptEncoding), []byte(",")))
}

// matches compares If-None-Match with an ETag, weakly, as the standard asks for GET.
func matches(header, etag string) bool {
	for part := range strings.SplitSeq(header, ",") {
		if part = strings.TrimPrefix(strings.TrimSpace(part), "W/"); part == etag || part == "*" {
			return true
		}
	}
	return false
}
