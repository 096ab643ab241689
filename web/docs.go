package web

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strings"
	"sync"

	"github.com/gofiber/fiber/v2"
)

// The API explorer: one page at /docs, and its files below /docs/<hash>/. The explorer itself is vendored and embedded
// compressed, as it is sent; it is 1.7 MB otherwise.
//
//go:embed docs vendor/explorer/*.gz style/mark.svg
var embeddedDocs embed.FS

// docsPolicy is that of the console with one more source of pictures: the explorer's style sheet holds its icons as
// data. No inline script or style is allowed here, either.
const docsPolicy = policy + "; img-src 'self' data:"

const docsPath = "/docs"

// explorer is the page and its files.
type explorer struct {
	page  file
	files map[string]file // by path below /docs/
}

// readExplorer prepares the files when the first of them is asked for: the start does not wait for it.
var readExplorer = sync.OnceValues(func() (*explorer, error) {
	e := &explorer{files: map[string]file{}}
	sum := sha256.New()
	files := map[string]file{}
	for _, pattern := range []string{"docs/*.js", "docs/*.css", "style/mark.svg", "vendor/explorer/*.gz"} {
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
			own := strings.TrimSuffix(path.Base(name), ".gz")
			if files[own], err = explorerFile(own, body, own != path.Base(name)); err != nil {
				return nil, fmt.Errorf("%s: %w", name, err)
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

// explorerFile is one file, from its own bytes or from its compressed ones.
func explorerFile(name string, body []byte, packed bool) (file, error) {
	if !packed {
		return newFile(contentType(name), body), nil
	}
	reader, err := gzip.NewReader(bytes.NewReader(body))
	if err != nil {
		return file{}, err
	}
	plain, err := io.ReadAll(reader)
	if err != nil {
		return file{}, err
	}
	sum := sha256.Sum256(plain)
	return file{kind: contentType(name), etag: `"` + hex.EncodeToString(sum[:8]) + `"`, plain: plain, gzip: body}, nil
}

// serveDocs answers /docs and what lies below it.
func (s *Site) serveDocs(c *fiber.Ctx, name string) bool {
	e, err := readExplorer()
	if err != nil {
		return false // the files are part of the program, and a test reads them
	}
	if name == "" {
		s.write(c, e.page, askAgain)
	} else if f, ok := e.files[name]; ok {
		s.write(c, f, forEver)
	} else {
		return false
	}
	c.Set(fiber.HeaderContentSecurityPolicy, docsPolicy)
	c.Set("Permissions-Policy", "camera=(), microphone=(), geolocation=()")
	return true
}
