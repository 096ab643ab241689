package web

import (
	"cmp"
	"net/http"
	"strings"

	"github.com/gofiber/fiber/v2"
)

// policy allows resources of our own origin only: no inline script or style, no frame, no plugin.
const policy = "default-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'; object-src 'none'"

// logoPolicy is for the bank's logo, an SVG of others: it may have styles of its own, and can neither run scripts nor load anything.
const logoPolicy = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; sandbox"

const (
	cacheImmutable  = "public, max-age=31536000, immutable"
	cacheRevalidate = "no-cache"
	cacheNoStore    = "no-store"
)

// workerPath is the address of the service worker that refreshes tokens. Browsers identify a worker by its address, so
// the address must not change with the content.
const workerPath = "/session-worker.js"

// Serve answers a GET or HEAD request if the console owns its path. Otherwise it does nothing and returns false.
func (s *Site) Serve(c *fiber.Ctx, path string) bool {
	if rest, ok := strings.CutPrefix(path, "/assets/"); ok {
		return s.serveAsset(c, rest)
	}
	if rest, ok := strings.CutPrefix(path, docsPath); ok && (rest == "" || rest[0] == '/') {
		return s.serveDocs(c, strings.TrimPrefix(rest, "/"))
	}
	if path == workerPath {
		s.write(c, s.state(false).assets["app/session_worker.js"], cacheRevalidate)
		return true
	}
	if path == "/favicon.ico" { // Browsers request it for pages without an icon, such as answers of the API.
		state := s.state(false)
		s.write(c, state.assets[state.icon], cacheRevalidate)
		return true
	}
	state := s.state(true)
	if !state.screens.MatchString(path) {
		return s.serveMissing(c, state, path)
	}
	c.Set("Permissions-Policy", "camera=(self), microphone=(), geolocation=()")
	s.write(c, state.index, cacheRevalidate)
	return true
}

// serveMissing answers browsers that open an address that does not exist. The page says so, with 404. Addresses of the API
// and clients that do not name HTML get JSON: it does nothing for them and returns false.
func (s *Site) serveMissing(c *fiber.Ctx, state *snapshot, path string) bool {
	inAPI := path == "/v1" || strings.HasPrefix(path, "/v1/")
	if inAPI || !strings.Contains(c.Get(fiber.HeaderAccept), fiber.MIMETextHTML) {
		return false
	}
	c.Vary(fiber.HeaderAccept)
	c.Request().Header.Del(fiber.HeaderIfNoneMatch) // The page itself has a validator; its absence has none.
	s.write(c, state.index, cacheNoStore)
	c.Response().Header.Del(fiber.HeaderETag)
	c.Status(http.StatusNotFound)
	return true
}

// serveAsset answers /assets/<hash>/<name>. A page that was opened before an upgrade still loads screens with the hash of
// its version; it gets the present file, which must not be cached under the old hash.
func (s *Site) serveAsset(c *fiber.Ctx, rest string) bool {
	hash, name, _ := strings.Cut(rest, "/")
	state := s.state(false)
	asset, ok := state.assets[name]
	if !ok {
		return false
	}
	caching := cacheImmutable
	if hash != state.hash {
		caching = cacheNoStore
	}
	if s.dev {
		caching = cacheRevalidate
	}
	s.write(c, asset, caching)
	return true
}

func (s *Site) write(c *fiber.Ctx, f file, caching string) {
	f.Send(c, caching)
	c.Set(fiber.HeaderContentSecurityPolicy, cmp.Or(f.policy, policy))
	c.Set("Cross-Origin-Opener-Policy", "same-origin")
	c.Set(fiber.HeaderXContentTypeOptions, "nosniff")
	c.Set(fiber.HeaderReferrerPolicy, "no-referrer")
}
