package web

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io/fs"
	"regexp"
	"strings"
)

// screensFile is the one list of the console's screens. The server answers their addresses with the page, and the page
// carries the list for routes, menu and titles (app/screens.js).
const screensFile = "screens.json"

// screen is a row of the list, as far as the server reads it.
type screen struct {
	Path string `json:"path"` // with :name for one segment, and :name? for one that may be missing
}

var parameter = regexp.MustCompile(`/:\w+(\??)`)

// readScreens reads the list and compiles the addresses that it names into one pattern.
func readScreens(files fs.FS) (list []byte, addresses *regexp.Regexp, err error) {
	text, err := fs.ReadFile(files, screensFile)
	if err != nil {
		return nil, nil, err
	}
	var rows []screen
	if err := json.Unmarshal(text, &rows); err != nil {
		return nil, nil, fmt.Errorf("%s: %w", screensFile, err)
	}
	patterns := make([]string, len(rows))
	for i, row := range rows {
		patterns[i] = parameter.ReplaceAllStringFunc(strings.TrimSuffix(row.Path, "/"), func(segment string) string {
			if strings.HasSuffix(segment, "?") {
				return `(?:/[^/]+)?`
			}
			return `/[^/]+`
		})
	}
	var compact bytes.Buffer
	if err := json.Compact(&compact, text); err != nil {
		return nil, nil, fmt.Errorf("%s: %w", screensFile, err)
	}
	addresses, err = regexp.Compile(`^(?:` + strings.Join(patterns, "|") + `)/?$`)
	return compact.Bytes(), addresses, err
}
