package web

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"io/fs"
	"path"
	"strings"
	"sync"

	"github.com/gofiber/fiber/v2"
)

// The API explorer is a page at /docs with its files below /docs/<hash>/. The vendored explorer is embedded in the
// compressed form in which it is sent; uncompressed it has 1.7 MB.
//
//go:embed docs app/ui/held_enter.js vendor/explorer/*.gz style/mark.svg
var embeddedDocs embed.FS

// docsPolicy is the console's policy plus data: images, because the explorer's style sheet contains its icons. Inline
// scripts and styles are not allowed here either.
const docsPolicy = policy + "; img-src 'self' data:"

const docsPath = "/docs"

// explorer contains the page and its files.
type explorer struct {
	page  file
	files map[string]file // by path below /docs/
}

// readExplorer prepares the files on the first request for one of them, so that the program starts without them.
var readExplorer = sync.OnceValues(func() (*explorer, error) {
	e := &explorer{files: map[string]file{}}
	sum := sha256.New()
	files := map[string]file{}
	for _, pattern := range []string{"docs/*.js", "docs/*.css", "app/ui/held_enter.js", "style/mark.svg", "vendor/explorer/*.gz"} {
		names, err := fs.Glob(embeddedDocs, pattern)
		if err != nil {
			return nil, err
		}
		for _, name := range names {
			body, err := embeddedDocs.ReadFile(name)
			if err != nil {
				return nil, err
			}
			sum.Write(body)
			if files[strings.TrimSuffix(path.Base(name), gzipSuffix)], err = readFile(name, body); err != nil {
				return nil, err
			}
		}
	}
	base := docsPath + "/" + hex.EncodeToString(sum.Sum(nil))[:12]
	for name, f := range files {
		e.files[strings.TrimPrefix(base, docsPath+"/")+"/"+name] = f
	}
	page, err := embeddedDocs.ReadFile("docs/index.html")
	if err != nil {
		return nil, err
	}
	e.page = newFile(contentType("index.html"), bytes.ReplaceAll(page, []byte("{{base}}"), []byte(base)))
	return e, nil
})

// serveDocs answers /docs and the addresses below it.
func (s *Site) serveDocs(c *fiber.Ctx, name string) bool {
	e, err := readExplorer()
	if err != nil {
		return false // A test reads the embedded files, so this does not happen in practice.
	}
	if name == "" {
		s.write(c, e.page, cacheRevalidate)
	} else if f, ok := e.files[name]; ok {
		s.write(c, f, cacheImmutable)
	} else {
		return false
	}
	c.Set(fiber.HeaderContentSecurityPolicy, docsPolicy)
	c.Set("Permissions-Policy", "camera=(), microphone=(), geolocation=()")
	return true
}
