// Command release builds the archives of a release with their checksums and bills of materials. The same commit and Go
// version result in the same bytes.
package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"flag"
	"fmt"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

func main() {
	log.SetFlags(0)
	source := flag.String("source", ".", "directory of the source")
	out := flag.String("out", "dist", "directory for the archives")
	version := flag.String("version", "", "version of the release, such as 1.2.3")
	targets := flag.String("targets", "linux/amd64,linux/arm64,darwin/amd64,darwin/arm64,windows/amd64,windows/arm64", "what to build")
	flag.Parse()
	if *version == "" {
		log.Fatal("name the version: make release RELEASE=1.2.3")
	}
	if err := run(*source, *out, *version, strings.Split(*targets, ",")); err != nil {
		log.Fatal(err)
	}
}

func run(source, out, version string, targets []string) error {
	when, err := commitTime(source)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(out, 0o755); err != nil {
		return err
	}
	var sums strings.Builder
	for _, target := range targets {
		system, processor, ok := strings.Cut(target, "/")
		if !ok {
			return fmt.Errorf("%q is not a target such as linux/amd64", target)
		}
		r := release{source: source, name: fmt.Sprintf("kontor_%s_%s_%s", version, system, processor), version: version, when: when, system: system, processor: processor}
		files, err := r.make()
		if err != nil {
			return fmt.Errorf("%s: %w", target, err)
		}
		for _, f := range files {
			if err := os.WriteFile(filepath.Join(out, f.name), f.content, 0o644); err != nil {
				return err
			}
			line := fmt.Sprintf("%x  %s\n", sha256.Sum256(f.content), f.name)
			sums.WriteString(line)
			fmt.Print(line)
		}
	}
	return os.WriteFile(filepath.Join(out, "SHA256SUMS"), []byte(sums.String()), 0o644)
}

// commitTime returns the time of the commit, which all files in the archives get.
func commitTime(source string) (time.Time, error) {
	text, err := exec.Command("git", "-C", source, "log", "-1", "--format=%ct").Output()
	if err != nil {
		return time.Time{}, fmt.Errorf("read the time of the commit: %w", err)
	}
	seconds, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
	return time.Unix(seconds, 0).UTC(), err
}

type release struct {
	source, name, version, system, processor string
	when                                     time.Time
}

type file struct {
	name    string
	content []byte
	mode    int64
}

// make returns the archive of one target and its bill of materials.
func (r release) make() ([]file, error) {
	program, err := r.build()
	if err != nil {
		return nil, err
	}
	bill, err := r.bill(program.content)
	if err != nil {
		return nil, err
	}
	content, err := r.documents()
	if err != nil {
		return nil, err
	}
	content = append(append([]file{program}, content...), file{"kontor.cdx.json", bill, 0o644})
	archive := file{name: r.name + ".tar.gz"}
	pack := r.tar
	if r.system == "windows" {
		archive.name, pack = r.name+".zip", r.zip
	}
	archive.content, err = pack(content)
	return []file{archive, {name: r.name + ".cdx.json", content: bill}}, err
}

// build compiles the program.
func (r release) build() (file, error) {
	dir, err := os.MkdirTemp("", "kontor-release-")
	if err != nil {
		return file{}, err
	}
	defer os.RemoveAll(dir)
	program := file{name: "kontor", mode: 0o755}
	if r.system == "windows" {
		program.name += ".exe"
	}
	at := filepath.Join(dir, program.name)
	cmd := exec.Command("go", "build", "-trimpath", "-ldflags", "-s -w -buildid= -X kontor/modules/commands.release="+r.version, "-o", at, ".")
	cmd.Dir, cmd.Stderr = r.source, os.Stderr
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=", "GOWORK=off", "GOAMD64=v1", "GOOS="+r.system, "GOARCH="+r.processor)
	if err := cmd.Run(); err != nil {
		return file{}, err
	}
	program.content, err = os.ReadFile(at)
	return program, err
}

func (r release) tar(files []file) ([]byte, error) {
	var packed bytes.Buffer
	compressed, err := gzip.NewWriterLevel(&packed, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	archive := tar.NewWriter(compressed)
	for _, f := range files {
		header := &tar.Header{Typeflag: tar.TypeReg, Name: r.name + "/" + f.name, Size: int64(len(f.content)), Mode: f.mode, ModTime: r.when, Format: tar.FormatUSTAR}
		if err := archive.WriteHeader(header); err != nil {
			return nil, err
		}
		if _, err := archive.Write(f.content); err != nil {
			return nil, err
		}
	}
	if err := archive.Close(); err != nil {
		return nil, err
	}
	err = compressed.Close()
	return packed.Bytes(), err
}

func (r release) zip(files []file) ([]byte, error) {
	var packed bytes.Buffer
	archive := zip.NewWriter(&packed)
	for _, f := range files {
		header := &zip.FileHeader{Name: r.name + "/" + f.name, Method: zip.Deflate, Modified: r.when}
		header.SetMode(os.FileMode(f.mode))
		w, err := archive.CreateHeader(header)
		if err != nil {
			return nil, err
		}
		if _, err := w.Write(f.content); err != nil {
			return nil, err
		}
	}
	err := archive.Close()
	return packed.Bytes(), err
}
