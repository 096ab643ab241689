// Package web keeps the console: plain HTML, CSS and JavaScript modules, served as they lie here. There is no build.
//
// All files but index.html live under /assets/<hash>/, where the hash is made of the whole content: they can be cached
// for ever, and the relative imports between modules keep working. index.html names that address and is asked for
// again each time. The console's own addresses (/customers, /admin/audit …) all answer with index.html; any other
// address is left to the caller. Authentication and data are the API's: nothing here is secret.
package web

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"io/fs"
	"mime"
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"
)

//go:embed index.html screens.json app style i18n vendor/*.mjs vendor/*.css
var embedded embed.FS

// Site is the console, ready to be served.
type Site struct {
	files   fs.FS
	dev     bool
	mutex   sync.Mutex // guards current while it is read anew in dev mode
	current *snapshot
}

// snapshot is one state of all files.
type snapshot struct {
	hash    string
	index   file
	screens *regexp.Regexp  // the addresses that index answers
	assets  map[string]file // by path below /assets/<hash>/
}

// file is one answer, plain and compressed.
type file struct {
	kind  string
	etag  string
	plain []byte
	gzip  []byte // nil where compressing does not pay
}

// New reads the embedded files.
func New() (*Site, error) { return open(embedded, false) }

// NewDev reads the files from a directory again for each request of the page, so that a change shows on reload.
func NewDev(files fs.FS) (*Site, error) { return open(files, true) }

func open(files fs.FS, dev bool) (*Site, error) {
	current, err := read(files)
	if err != nil {
		return nil, fmt.Errorf("console: %w", err)
	}
	return &Site{files: files, dev: dev, current: current}, nil
}

// state gives the files as they are; in dev mode they are read again when the page is asked for.
func (s *Site) state(page bool) *snapshot {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if s.dev && page {
		if fresh, err := read(s.files); err == nil { // A half-saved file keeps the last good state.
			s.current = fresh
		}
	}
	return s.current
}

// folders hold what index.html and the modules refer to.
var folders = []string{"app", "style", "i18n", "vendor"}

func read(files fs.FS) (*snapshot, error) {
	s := &snapshot{assets: map[string]file{}}
	sum := sha256.New()
	for _, folder := range folders {
		err := fs.WalkDir(files, folder, func(name string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() {
				return err
			}
			kind := contentType(name)
			if kind == "" {
				return nil // Licences and notes are kept for readers of the source, not served.
			}
			body, err := fs.ReadFile(files, name)
			if err != nil {
				return err
			}
			fmt.Fprintf(sum, "%s %d\n", name, len(body))
			sum.Write(body)
			s.assets[name] = newFile(kind, body)
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	page, err := fs.ReadFile(files, "index.html")
	if err != nil {
		return nil, err
	}
	list, addresses, err := readScreens(files)
	if err != nil {
		return nil, err
	}
	s.hash, s.screens = hex.EncodeToString(sum.Sum(nil))[:12], addresses
	s.index = newFile(contentType("index.html"), s.page(page, list))
	return s, nil
}

// page fills index.html: the address of the assets, the list of screens, and the modules that the first screen needs, so
// that the browser fetches them in parallel instead of discovering them one by one.
func (s *snapshot) page(template, screens []byte) []byte {
	base := "/assets/" + s.hash
	var preload strings.Builder
	for _, name := range s.closure("app/main.js") {
		fmt.Fprintf(&preload, "<link rel=\"modulepreload\" href=\"%s/%s\">\n", base, name)
	}
	page := bytes.ReplaceAll(template, []byte("{{base}}"), []byte(base))
	page = bytes.ReplaceAll(page, []byte("{{screens}}"), screens)
	return bytes.ReplaceAll(page, []byte("{{preload}}"), []byte(strings.TrimSpace(preload.String())))
}

// closure lists the modules that a module imports, and those that they import, in a stable order.
func (s *snapshot) closure(entry string) []string {
	seen := map[string]bool{}
	var visit func(name string)
	visit = func(name string) {
		if seen[name] {
			return
		}
		seen[name] = true
		for _, found := range staticImport.FindAllSubmatch(s.assets[name].plain, -1) {
			visit(path.Join(path.Dir(name), string(found[1])))
		}
	}
	visit(entry)
	names := make([]string, 0, len(seen))
	for name := range seen {
		if _, ok := s.assets[name]; ok {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

const minCompressed = 512 // below this a compressed answer saves no packet

func newFile(kind string, body []byte) file {
	sum := sha256.Sum256(body)
	f := file{kind: kind, plain: body, etag: `"` + hex.EncodeToString(sum[:8]) + `"`}
	if len(body) < minCompressed {
		return f
	}
	var packed bytes.Buffer
	writer, _ := gzip.NewWriterLevel(&packed, gzip.BestCompression) // the level is a constant that exists
	_, _ = writer.Write(body)                                       // a bytes.Buffer does not fail
	_ = writer.Close()
	if packed.Len() < len(body) {
		f.gzip = packed.Bytes()
	}
	return f
}

// contentType names the kinds of file that are served; the system's own table may lack or change them.
func contentType(name string) string {
	switch ext := path.Ext(name); ext {
	case ".js", ".mjs":
		return "text/javascript; charset=utf-8"
	case ".css":
		return "text/css; charset=utf-8"
	case ".json":
		return "application/json; charset=utf-8"
	case ".html":
		return "text/html; charset=utf-8"
	case ".svg":
		return "image/svg+xml"
	case ".png", ".woff2":
		return mime.TypeByExtension(ext)
	default:
		return ""
	}
}
