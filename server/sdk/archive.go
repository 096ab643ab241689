package sdk

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"path"
	"regexp"
	"time"
)

// goMod is the file go.mod of the Go client. It needs the standard library only.
const goMod = "module " + Module + "\n\ngo 1.26\n"

// packed is the time of all files in the archives, so that the same sources give the same bytes. It is also the time of the
// Go module: go takes it only for display.
var packed = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)

// content is a file of an archive.
type content struct {
	name string
	data []byte
}

// readDir returns the files of a directory that want accepts, in the order of their names.
func readDir(files fs.FS, directory string, want func(name string) bool) ([]content, error) {
	entries, err := fs.ReadDir(files, directory)
	if err != nil {
		return nil, err
	}
	var all []content
	for _, entry := range entries {
		if entry.IsDir() || !want(entry.Name()) {
			continue
		}
		name := path.Join(directory, entry.Name())
		data, err := fs.ReadFile(files, name)
		if err != nil {
			return nil, err
		}
		all = append(all, content{name, data})
	}
	return all, nil
}

// digest returns 12 digits that change with the files.
func digest(lists ...[]content) string {
	sum := sha256.New()
	for _, list := range lists {
		for _, c := range list {
			sum.Write([]byte(c.name + "\x00"))
			one := sha256.Sum256(c.data)
			sum.Write(one[:])
		}
	}
	return hex.EncodeToString(sum.Sum(nil))[:12]
}

// packageArchive returns an npm package of the version.
func packageArchive(version string, files []content) ([]byte, error) {
	var out bytes.Buffer
	compressed := gzip.NewWriter(&out)
	archive := tar.NewWriter(compressed)
	for _, f := range files {
		if f.name == "package.json" {
			var err error
			if f.data, err = withVersion(f.data, version); err != nil {
				return nil, err
			}
		}
		header := &tar.Header{Name: "package/" + f.name, Mode: 0o644, Size: int64(len(f.data)), ModTime: packed, Format: tar.FormatUSTAR}
		if err := archive.WriteHeader(header); err != nil {
			return nil, err
		}
		if _, err := archive.Write(f.data); err != nil {
			return nil, err
		}
	}
	if err := archive.Close(); err != nil {
		return nil, err
	}
	err := compressed.Close()
	return out.Bytes(), err
}

// npmVersion finds the version in package.json. The order of the other members matters, so the file stays as it is.
var npmVersion = regexp.MustCompile(`"version": "[^"]*"`)

// withVersion returns a package.json with another version.
func withVersion(data []byte, version string) ([]byte, error) {
	if len(npmVersion.FindAll(data, 2)) != 1 {
		return nil, errors.New("package.json must have one member version")
	}
	return npmVersion.ReplaceAll(data, []byte(`"version": "`+version+`"`)), nil
}

// moduleArchive returns the archive of a Go module, whose files are below prefix.
func moduleArchive(prefix string, files []content) ([]byte, error) {
	var out bytes.Buffer
	archive := zip.NewWriter(&out)
	for _, f := range files {
		w, err := archive.CreateHeader(&zip.FileHeader{Name: prefix + "/" + f.name, Method: zip.Deflate, Modified: packed})
		if err != nil {
			return nil, err
		}
		if _, err := w.Write(f.data); err != nil {
			return nil, err
		}
	}
	err := archive.Close()
	return out.Bytes(), err
}
