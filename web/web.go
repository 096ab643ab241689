// Package web serves the console: plain HTML, CSS and JavaScript modules, without a build step.
//
// All files except index.html are below /assets/<hash>/. The hash covers all files, so that browsers may cache them
// without limit while the relative imports between modules keep working. index.html contains that address; browsers
// revalidate it with each request. The console's own addresses (/customers, /admin/audit …) all return index.html; the
// package does not answer any other address. The API does authentication and access control: nothing here is secret.
package web

import (
	"cmp"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"html"
	"io/fs"
	"path"
	"regexp"
	"strings"
	"sync"

	"kontor/server/static"
)

//go:embed index.html screens.json app style i18n vendor/*.mjs vendor/*.gz vendor/*.woff2
var embedded embed.FS

// Site serves the console.
type Site struct {
	files   fs.FS
	dev     bool
	options Options
	mutex   sync.Mutex // guards current, which changes in dev mode
	current *snapshot  // nil until the first use of the embedded files
}

// snapshot is a version of all files.
type snapshot struct {
	hash    string
	index   file
	icon    string          // the path of the bank's logo or Kontor's, below /assets/<hash>/
	screens *regexp.Regexp  // the addresses that return index
	assets  map[string]file // by path below /assets/<hash>/
}

// file is one file.
type file struct {
	static.File
	policy string // its content security policy; empty: that of the console
}

// Options configure a Site.
type Options struct {
	// Bank is what the console shows of the bank.
	Bank Bank
	// Sandbox makes each page show that the server is a sandbox for developers, and its time.
	Sandbox bool
}

// Bank is what the console shows of the bank to customers and before sign-in. Empty members stand for those of Kontor.
type Bank struct {
	Name       string `json:"name,omitempty"`
	Color      string `json:"color,omitempty"`
	TermsURL   string `json:"terms,omitempty"`
	PrivacyURL string `json:"privacy,omitempty"`
	LogoName   string `json:"logo,omitempty"` // style/logo.svg or style/logo.png
	Logo       []byte `json:"-"`
}

// New returns a Site that serves the embedded files. It reads them on the first request, which takes some milliseconds, so
// that the program starts without them.
func New(o Options) *Site { return &Site{files: embedded, options: o} }

// NewDev returns a Site that reads the files again for each request of the page, so that changes show on reload.
func NewDev(files fs.FS, o Options) (*Site, error) {
	current, err := read(files, o)
	if err != nil {
		return nil, fmt.Errorf("console: %w", err)
	}
	return &Site{files: files, dev: true, options: o, current: current}, nil
}

// state returns the present files. In dev mode it reads them again if page is true.
func (s *Site) state(page bool) *snapshot {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if s.current == nil {
		current, err := read(s.files, s.options)
		if err != nil {
			panic(err) // A test reads the embedded files, so this does not happen in practice.
		}
		s.current = current
	}
	if s.dev && page {
		if fresh, err := read(s.files, s.options); err == nil { // An invalid file keeps the former version.
			s.current = fresh
		}
	}
	return s.current
}

// folders are the directories whose files are served.
var folders = []string{"app", "style", "i18n", "vendor"}

func read(files fs.FS, o Options) (*snapshot, error) {
	s := &snapshot{assets: map[string]file{}}
	sum := sha256.New()
	fmt.Fprintf(sum, "%v\n", o.Bank)
	for _, folder := range folders {
		err := fs.WalkDir(files, folder, func(name string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() {
				return err
			}
			own := strings.TrimSuffix(name, gzipSuffix)
			if contentType(own) == "" {
				return nil // Licences and notes are not served.
			}
			body, err := fs.ReadFile(files, name)
			if err != nil {
				return err
			}
			fmt.Fprintf(sum, "%s %d\n", name, len(body))
			sum.Write(body)
			s.assets[own], err = readFile(name, body)
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	page, err := fs.ReadFile(files, "index.html")
	if err != nil {
		return nil, err
	}
	screens, list, addresses, err := readScreens(files)
	if err != nil {
		return nil, err
	}
	s.hash, s.screens = hex.EncodeToString(sum.Sum(nil))[:12], addresses
	if err := s.bundleAll(screens); err != nil {
		return nil, err
	}
	if o.Bank.LogoName != "" {
		s.assets[o.Bank.LogoName] = file{static.NewCompressed(contentType(o.Bank.LogoName), o.Bank.Logo), logoPolicy}
	}
	s.icon = cmp.Or(o.Bank.LogoName, "style/mark.svg")
	s.index = newFile(contentType("index.html"), s.page(page, list, o))
	return s, nil
}

// page fills in index.html: the address of the assets, the list of screens, the bank, and the mark of a sandbox.
func (s *snapshot) page(template, screens []byte, o Options) []byte {
	mark := ""
	if o.Sandbox {
		mark = sandboxMark
	}
	bank, _ := json.Marshal(o.Bank) // Texts can always be encoded; < and > are escaped.
	return []byte(strings.NewReplacer("{{base}}", "/assets/"+s.hash, "{{sandbox}}", mark, "{{icon}}", s.icon, "{{bank}}", string(bank),
		"{{name}}", html.EscapeString(cmp.Or(o.Bank.Name, "Kontor")), "{{screens}}", string(screens)).Replace(string(template)))
}

// sandboxMark makes web/app/ui/sandbox.js show the mark of a sandbox.
const sandboxMark = `<meta name="kontor-mode" content="sandbox">`

// gzipSuffix ends the names of files that are stored in the compressed form in which they are sent.
const gzipSuffix = ".gz"

// readFile returns a stored file.
func readFile(name string, body []byte) (file, error) {
	own, packed := strings.CutSuffix(name, gzipSuffix)
	if !packed {
		return newFile(contentType(name), body), nil
	}
	f, err := static.Unpack(contentType(own), body)
	if err != nil {
		return file{}, fmt.Errorf("%s: %w", name, err)
	}
	return file{File: f}, nil
}

func newFile(kind string, body []byte) file { return file{File: static.NewCompressed(kind, body)} }

// contentType returns the type of the files that are served, independently of the system's table of types.
func contentType(name string) string {
	switch path.Ext(name) {
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
	case ".png":
		return "image/png"
	case ".woff2":
		return "font/woff2"
	default:
		return ""
	}
}
