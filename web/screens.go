package web

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io/fs"
	"regexp"
	"strings"
)

// screensFile lists the console's screens. The server returns the page for their addresses. The page contains the list,
// and the console builds its routes, menu and titles from it (app/screens.js).
const screensFile = "screens.json"

// screen is the part of a row that the server reads.
type screen struct {
	Path   string `json:"path"`   // :name stands for one segment, :name? for an optional one
	Module string `json:"module"` // below app/screens
	Client struct {
		Module string `json:"module"` // for customers, if it is another one
	} `json:"client"`
}

var parameter = regexp.MustCompile(`/:\w+(\??)`)

// readScreens returns the rows, the list without white space, and a pattern that matches the addresses of all screens.
func readScreens(files fs.FS) (rows []screen, list []byte, addresses *regexp.Regexp, err error) {
	text, err := fs.ReadFile(files, screensFile)
	if err != nil {
		return nil, nil, nil, err
	}
	if err := json.Unmarshal(text, &rows); err != nil {
		return nil, nil, nil, fmt.Errorf("%s: %w", screensFile, err)
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
		return nil, nil, nil, fmt.Errorf("%s: %w", screensFile, err)
	}
	addresses, err = regexp.Compile(`^(?:` + strings.Join(patterns, "|") + `)/?$`)
	return rows, compact.Bytes(), addresses, err
}
