// Package sdk serves the clients of the API for installation, always in the version of the running program, without a connection
// to any other server:
//
//   - /sdk/kontor-client.tgz is the npm package, for "npm install" with this address.
//   - /sdk/kontor-client.js is a module for browsers. It exports the files below /sdk/kontor-client/.
//   - /sdk/go is a Go module proxy that has the one module kontor.local/client (https://go.dev/ref/mod#goproxy-protocol).
//     All other modules are "not found", so that the go command continues with the next proxy of its list.
//
// The files contain nothing secret, and all callers may read them.
package sdk

import (
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/gofiber/fiber/v2"

	"kontor/server/static"
)

// Module is the path of the Go client as a module.
const Module = "kontor.local/client"

// Options are the sources of the clients. All are required except Release.
type Options struct {
	Release string // the version of the program, such as 1.2.3; empty means a build from the sources
	Go      fs.FS  // the directory of the Go client
	Script  fs.FS  // the directory of the npm package, with its compiled modules in dist
	License []byte
}

// SDK serves the clients. It packs them on the first request.
type SDK struct {
	read func() (*clients, error)
}

// clients are the files that are served, by the path below /sdk/.
type clients struct {
	version string // for example 1.2.3; in a build from the sources 0.0.0-dev-<digest>: npm and Go keep each version for ever
	files   map[string]static.File
}

// New returns an SDK.
func New(o Options) *SDK { return &SDK{sync.OnceValues(o.pack)} }

// Serve answers a GET or HEAD request for a path below /sdk/ that exists. Otherwise it does nothing and returns false.
func (s *SDK) Serve(c *fiber.Ctx, address string) bool {
	name, ok := strings.CutPrefix(address, "/sdk/")
	if !ok {
		return false
	}
	clients, err := s.read()
	if err != nil {
		return false // A test packs the embedded files, so this does not happen in practice.
	}
	f, ok := clients.files[name]
	if !ok {
		return false
	}
	f.Send(c, "no-cache") // the next version of the program has the same addresses
	c.Set(fiber.HeaderContentSecurityPolicy, "default-src 'none'; frame-ancestors 'none'")
	c.Set(fiber.HeaderXContentTypeOptions, "nosniff")
	c.Set(fiber.HeaderReferrerPolicy, "no-referrer")
	// Pages of any origin may import the module. The setting cors.allowed_origins decides whether they may call the API.
	c.Set(fiber.HeaderAccessControlAllowOrigin, "*")
	c.Set("Cross-Origin-Resource-Policy", "cross-origin")
	return true
}

// semantic matches a version of npm and of Go modules without metadata of the build.
var semantic = regexp.MustCompile(`^(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(-[0-9A-Za-z-]+(\.[0-9A-Za-z-]+)*)?$`)

// pack makes all files.
func (o Options) pack() (*clients, error) {
	sources, err := readDir(o.Go, ".", func(name string) bool { return strings.HasSuffix(name, ".go") && !strings.HasSuffix(name, "_test.go") })
	if err != nil {
		return nil, err
	}
	modules, err := readDir(o.Script, "dist", func(string) bool { return true })
	if err != nil {
		return nil, err
	}
	others, err := readDir(o.Script, ".", func(string) bool { return true })
	if err != nil {
		return nil, err
	}
	c := &clients{version: strings.TrimPrefix(o.Release, "v"), files: map[string]static.File{}}
	if !semantic.MatchString(c.version) {
		c.version = "0.0.0-dev-" + digest(sources, modules, others)
	}
	archive, err := packageArchive(c.version, append(append(others, modules...), content{"LICENSE", o.License}))
	if err != nil {
		return nil, err
	}
	c.add("kontor-client.tgz", "application/gzip", archive)
	c.add("kontor-client.js", "text/javascript; charset=utf-8", []byte("export * from './kontor-client/index.js';\n"))
	for _, m := range modules {
		if strings.HasSuffix(m.name, ".js") {
			c.add("kontor-client/"+path.Base(m.name), "text/javascript; charset=utf-8", m.data)
		}
	}
	return c, c.addModule(append(sources, content{"LICENSE", o.License}))
}

func (c *clients) add(name, kind string, body []byte) { c.files[name] = static.New(kind, body) }

// addModule adds the five files of the proxy protocol.
func (c *clients) addModule(sources []content) error {
	version := "v" + c.version
	archive, err := moduleArchive(Module+"@"+version, append(sources, content{"go.mod", []byte(goMod)}))
	if err != nil {
		return err
	}
	info := fmt.Appendf(nil, `{"Version":%q,"Time":%q}`, version, packed.Format(time.RFC3339))
	at := "go/" + Module + "/@v/"
	c.add("go/"+Module+"/@latest", fiber.MIMEApplicationJSON, info)
	c.add(at+"list", "text/plain; charset=utf-8", []byte(version+"\n"))
	c.add(at+version+".info", fiber.MIMEApplicationJSON, info)
	c.add(at+version+".mod", "text/plain; charset=utf-8", []byte(goMod))
	c.add(at+version+".zip", "application/zip", archive)
	return nil
}
