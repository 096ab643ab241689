package hostile_test

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"kontor/modules/commands/systemtest"
)

const (
	atOnce = 16 // requests of each kind

	// mostGrowth is by how much the memory of the process may grow. The bodies themselves are 16 MiB of it, twice that while they arrive.
	mostGrowth = 150 << 20

	// jsonBytes is the size of bodies of JSON. Longer ones are for files, in base64: they are in memory by design, within a budget for all of
	// them. streamBytes is that of forms, which are not in memory as a whole.
	jsonBytes   = 1 << 20
	streamBytes = 9 << 20
	smallBytes  = 30 << 10 // for operations with a smaller limit
)

// schema is a part of the API document.
type schema struct {
	Ref                  string             `json:"$ref"`
	Type                 any                `json:"type"`
	Properties           map[string]*schema `json:"properties"`
	AdditionalProperties any                `json:"additionalProperties"`
	Items                *schema            `json:"items"`
	AnyOf                []*schema          `json:"anyOf"`
	OneOf                []*schema          `json:"oneOf"`
}

type operation struct {
	Security    []map[string][]string `json:"security"`
	RequestBody *struct {
		Content map[string]struct {
			Schema *schema `json:"schema"`
		} `json:"content"`
	} `json:"requestBody"`
}

type document struct {
	Paths      map[string]map[string]json.RawMessage `json:"paths"`
	Components struct {
		Schemas map[string]*schema `json:"schemas"`
	} `json:"components"`
}

// body is a body without its filling: what fills it is repeated between begin and end.
type body struct {
	name, begin, end string
	next             func(i int) string
}

// of returns the body with a size in bytes, at most.
func (b body) of(size int) string {
	var s strings.Builder
	s.WriteString(b.begin)
	for i := 0; ; i++ {
		entry := b.next(i)
		if s.Len()+len(entry)+len(b.end)+1 > size {
			break
		}
		if i > 0 && !strings.HasPrefix(entry, "\r\n") {
			s.WriteByte(',')
		}
		s.WriteString(entry)
	}
	return s.String() + b.end
}

func always(text string) func(int) string { return func(int) string { return text } }

func numbered(i int) string { return `"` + strconv.FormatInt(int64(i), 36) + `":1` }

// fillings returns bodies that fill the arrays and objects of a schema with the smallest entries.
func (d *document) fillings(s *schema, at, begin, end string, depth int) (all []body) {
	if s == nil || depth > 6 {
		return nil
	}
	if name, ok := strings.CutPrefix(s.Ref, "#/components/schemas/"); ok {
		return d.fillings(d.Components.Schemas[name], at, begin, end, depth)
	}
	for _, form := range append(s.AnyOf, s.OneOf...) {
		all = append(all, d.fillings(form, at, begin, end, depth)...)
	}
	if s.Items != nil {
		for _, entry := range []string{"1", "{}"} {
			all = append(all, body{at + " of " + entry, begin + "[", "]" + end, always(entry)})
		}
		return append(all, d.fillings(s.Items, at+".0", begin+"[", "]"+end, depth+1)...)
	}
	if free := len(s.Properties) == 0 && len(all) == 0 && (s.Type == nil || s.AdditionalProperties != nil); free {
		all = append(all, body{at + " of names", begin + "{", "}" + end, numbered}, body{at + " of arrays", begin + `{"a":[`, "]}" + end, always("[]")})
	}
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		all = append(all, d.fillings(s.Properties[name], at+"."+name, begin+`{"`+name+`":`, "}"+end, depth+1)...)
	}
	return all
}

// ofForm returns forms whose heads are as large as the body.
func ofForm() []body {
	const part = "--b\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a"
	const end = "\"\r\n\r\nx\r\n--b--\r\n"
	return []body{
		{"a long file name", part, end, always(strings.Repeat("x", 1000))},
		{"many headers", part + `"`, "\r\n\r\nx\r\n--b--\r\n", always("\r\nX: y")},
		{"many parts", "", "\r\n--b--\r\n", always("\r\n--b\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\n")},
	}
}

const jsonMedia, formMedia = "application/json", "multipart/form-data"

// bodies returns what is sent to an operation, by media type.
func (d *document) bodies(o operation) map[string][]body {
	all := map[string][]body{}
	for media, content := range o.RequestBody.Content {
		switch media {
		case jsonMedia:
			all[media] = append(d.fillings(content.Schema, "body", "", "", 0),
				body{"unknown names", "{", "}", numbered}, body{"an unknown array", `{"unknown":[`, "]}", always("{}")})
		case formMedia:
			all[media+"; boundary=b"] = ofForm()
		default:
			all[media] = []body{{"separators", "", "", always("\r\n,;,;,;")}}
		}
	}
	return all
}

// memory returns a value of /proc/PID/status in bytes.
func memory(t *testing.T, p *systemtest.Process, name string) int {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.Cmd.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile(name + `:\s+(\d+) kB`).FindSubmatch(status)
	if found == nil {
		t.Fatalf("no %s in %s", name, status)
	}
	kB, _ := strconv.Atoi(string(found[1])) // digits only
	return kB << 10
}

var pathName = regexp.MustCompile(`\{[^}]*\}`)

// flood sends a body many times at once. It returns the statuses of the answers.
func flood(t *testing.T, c *systemtest.Client, method, path, media, text string) (statuses []int) {
	t.Helper()
	statuses = make([]int, atOnce)
	var all sync.WaitGroup
	for i := range atOnce {
		all.Go(func() {
			request, err := http.NewRequestWithContext(t.Context(), method, c.URL+path, strings.NewReader(text))
			if err != nil {
				t.Error(err)
				return
			}
			request.Header.Set("Content-Type", media)
			for i := 0; i+1 < len(c.Headers); i += 2 {
				request.Header.Set(c.Headers[i], c.Headers[i+1])
			}
			response, err := c.HTTP.Do(request)
			if err != nil {
				return // the server answers before it has read the body, and ends the connection
			}
			defer response.Body.Close()
			_, _ = io.Copy(io.Discard, response.Body) // the status matters
			statuses[i] = response.StatusCode
		})
	}
	all.Wait()
	return statuses
}

// The memory of the process does not depend on how many values, names or headers a body has. Each operation of the API document gets the
// smallest entries that fill a body, many at once.
func TestHostile_BodiesOfTheSmallestEntries(t *testing.T) {
	p := systemtest.StartPlain(t, filepath.Join(t.TempDir(), "data"))
	var d document
	p.Client().Do(t, "GET", "/openapi.json", "", 200).Decode(t, &d)
	admin, tried := p.Admin(), 0
	for range 3 { // what the first requests need stays in memory
		flood(t, admin, "POST", "/v1/customers", jsonMedia, `{"type":"individual"}`)
	}
	before := memory(t, p, "VmRSS")
	for _, path := range slices.Sorted(maps.Keys(d.Paths)) {
		for _, method := range []string{"post", "put", "patch", "delete"} {
			var o operation
			if text := d.Paths[path][method]; text == nil || json.Unmarshal(text, &o) != nil || o.RequestBody == nil {
				continue
			}
			if got, err := admin.Try("GET", "/v1/users/me", ""); err != nil || got.Status != 200 {
				admin = p.Admin() // an attack has ended the session
			}
			c := admin
			if len(o.Security) == 0 {
				c = p.Client()
			} else if o.Security[0]["apiKeyAuth"] != nil {
				c = p.Keyed()
			}
			at := pathName.ReplaceAllString(path, "0193a000-0000-7000-8000-000000000001")
			for media, bodies := range d.bodies(o) {
				for _, b := range bodies {
					tried++
					fillWith(t, c, strings.ToUpper(method), at, media, b)
				}
			}
			if grown := memory(t, p, "VmHWM") - before; grown > mostGrowth {
				t.Fatalf("%s %s: the process has grown by %d MB", method, path, grown>>20)
			}
		}
	}
	t.Logf("%d bodies; the process has grown by %d MB", tried, (memory(t, p, "VmHWM")-before)>>20)
	if tried < 200 {
		t.Errorf("only %d bodies were tried", tried)
	}
	if code := p.Stop(); code != 0 {
		t.Errorf("exit code %d", code)
	}
}

// fillWith floods an operation with the largest body that it accepts.
func fillWith(t *testing.T, c *systemtest.Client, method, path, media string, b body) {
	t.Helper()
	sizes := []int{jsonBytes, smallBytes}
	if strings.HasPrefix(media, formMedia) {
		sizes = append([]int{streamBytes}, sizes...)
	}
	for _, size := range sizes {
		statuses := flood(t, c, method, path, media, b.of(size))
		if slices.Contains(statuses, http.StatusRequestEntityTooLarge) || slices.Max(statuses) == 0 {
			continue // a client that is still sending may see the end of the connection instead of the answer
		}
		for _, status := range statuses {
			// Bodies of JSON must not be kept out by their number; files may.
			if status >= 500 && status != http.StatusServiceUnavailable || status == http.StatusTooManyRequests && media == jsonMedia {
				t.Errorf("%s %s: %s: got %d", method, path, b.name, status)
			}
		}
		return
	}
	t.Errorf("%s %s: %s: a small body is not answered", method, path, b.name)
}
