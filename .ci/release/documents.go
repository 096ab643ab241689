package main

import (
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
)

// beside are the files of an archive besides the program, the bill of materials and the directory docs. They keep their paths, so that
// links between them work.
var beside = []string{"CHANGELOG.md", "LICENSE", "README.md", "SECURITY.md", "licences/THIRD_PARTY_LICENSES"}

// documents returns what an archive contains to read. Links to files of the source are plain text there.
func (r release) documents() ([]file, error) {
	names := beside
	docs := filepath.Join(r.source, "docs")
	err := filepath.WalkDir(docs, func(at string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if hidden := strings.HasPrefix(entry.Name(), "."); entry.IsDir() && (hidden || entry.Name() == "node_modules") {
			return fs.SkipDir
		} else if hidden || !entry.Type().IsRegular() {
			return nil
		}
		name, err := filepath.Rel(r.source, at)
		names = append(names, filepath.ToSlash(name))
		return err
	})
	if err != nil {
		return nil, err
	}
	has := map[string]bool{}
	for _, name := range names {
		for ; name != "."; name = path.Dir(name) {
			has[name] = true
		}
	}
	var files []file
	for _, name := range names {
		text, err := os.ReadFile(filepath.Join(r.source, filepath.FromSlash(name)))
		if err != nil {
			return nil, err
		}
		if path.Ext(name) == ".md" {
			text = []byte(withoutSource(r.forArchive(string(text)), path.Dir(name), has))
		}
		files = append(files, file{name, text, 0o644})
	}
	return files, nil
}

var (
	sourcePart  = regexp.MustCompile(`(?s)<!-- source -->\n.*?<!-- end of source -->\n`)
	archivePart = regexp.MustCompile(`(?s)<!-- archive\n(.*?)end of archive -->\n`)
	link        = regexp.MustCompile(`(!?)\[([^\]]*)\]\(([^)\s]+)\)`)
)

// forArchive returns a document with its parts for readers of an archive instead of those for readers of the source.
func (r release) forArchive(text string) string {
	text = archivePart.ReplaceAllString(sourcePart.ReplaceAllString(text, ""), "$1")
	program := "./kontor"
	if r.system == "windows" {
		program = `.\kontor.exe`
	}
	return strings.NewReplacer("`go run .", "`"+program, "\n./kontor\n", "\n"+program+"\n").Replace(text)
}

// withoutSource replaces links to files that the archive lacks with their text. dir is the directory of the document.
func withoutSource(text, dir string, has map[string]bool) string {
	return link.ReplaceAllStringFunc(text, func(all string) string {
		part := link.FindStringSubmatch(all)
		target, _, _ := strings.Cut(part[3], "#")
		if target == "" || strings.Contains(target, "://") || strings.HasPrefix(target, "mailto:") || has[path.Join(dir, target)] {
			return all
		}
		return part[2]
	})
}
