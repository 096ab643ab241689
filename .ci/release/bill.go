package main

import (
	"bytes"
	"crypto/sha256"
	"debug/buildinfo"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	cdx "github.com/CycloneDX/cyclonedx-go"
)

// bill returns the bill of materials of a program in the format CycloneDX: the modules that the linker recorded, Go itself, and
// the vendored files of the console. It has no time and no serial number, which would differ in each build.
func (r release) bill(program []byte) ([]byte, error) {
	info, err := buildinfo.Read(bytes.NewReader(program))
	if err != nil {
		return nil, err
	}
	main := cdx.Component{BOMRef: "kontor", Type: cdx.ComponentTypeApplication, Name: "kontor", Version: r.version,
		PackageURL: "pkg:generic/kontor@" + r.version + "?arch=" + r.processor + "&os=" + r.system,
		Hashes:     &[]cdx.Hash{{Algorithm: cdx.HashAlgoSHA256, Value: fmt.Sprintf("%x", sha256.Sum256(program))}}}
	components := []cdx.Component{library("std", strings.TrimPrefix(info.GoVersion, "go"), "pkg:golang/std@")}
	for _, module := range info.Deps {
		if module.Replace != nil {
			module = module.Replace
		}
		components = append(components, library(module.Path, module.Version, "pkg:golang/"+module.Path+"@"))
	}
	vendored, err := r.vendored()
	if err != nil {
		return nil, err
	}
	components = append(components, vendored...)
	var needs []string
	for _, c := range components {
		needs = append(needs, c.BOMRef)
	}
	bom := cdx.NewBOM()
	bom.Metadata = &cdx.Metadata{Component: &main}
	bom.Components = &components
	bom.Dependencies = &[]cdx.Dependency{{Ref: main.BOMRef, Dependencies: &needs}}
	var text bytes.Buffer
	err = cdx.NewBOMEncoder(&text, cdx.BOMFileFormatJSON).SetPretty(true).EncodeVersion(bom, cdx.SpecVersion1_6)
	return text.Bytes(), err
}

func library(name, version, purl string) cdx.Component {
	return cdx.Component{BOMRef: purl + version, Type: cdx.ComponentTypeLibrary, Name: name, Version: version, PackageURL: purl + version}
}

var vendoredRow = regexp.MustCompile(`(?m)^\| (@?[a-z0-9/.-]+) \| ([0-9][0-9.]*) \| ([A-Za-z0-9.-]+) \|`)

// vendored returns the packages of npm in web/vendor/VENDOR.md, those for tests aside.
func (r release) vendored() ([]cdx.Component, error) {
	text, err := os.ReadFile(filepath.Join(r.source, "web", "vendor", "VENDOR.md"))
	if err != nil {
		return nil, err
	}
	var found []cdx.Component
	for _, row := range vendoredRow.FindAllStringSubmatch(string(text), -1) {
		c := library(row[1], row[2], "pkg:npm/"+strings.Replace(row[1], "@", "%40", 1)+"@")
		c.Licenses = &cdx.Licenses{{License: &cdx.License{ID: row[3]}}}
		if !slices.ContainsFunc(found, func(known cdx.Component) bool { return known.BOMRef == c.BOMRef }) {
			found = append(found, c)
		}
	}
	if len(found) == 0 {
		return nil, fmt.Errorf("web/vendor/VENDOR.md lists no package")
	}
	return found, nil
}
