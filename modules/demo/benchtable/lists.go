package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// measurement measures every list that the API document of a running server describes: without parameters, by each sort, search and
// distinct, far behind the first page, and after a cursor; with combinations also two of these at once. It writes the requests that were
// slow, each with its first time, which counts the total, and its second.
type measurement struct {
	server, token string
	user          string
	password      string
	slow          time.Duration
	pid           int
	all           bool
	combinations  bool
	only          string
	step          int
	slowest       time.Duration
	requests      int
	found         []timed
}

type timed struct {
	path          string
	first, second time.Duration
	status        int
}

// document is the part of the API document that names the lists.
type document struct {
	Paths map[string]map[string]struct {
		Parameters []struct {
			Ref string `json:"$ref"`
		} `json:"parameters"`
	} `json:"paths"`
	Components struct {
		Parameters map[string]struct {
			Name string `json:"name"`
		} `json:"parameters"`
	} `json:"components"`
}

// page is the part of a list's answer that is used.
type page struct {
	Data       []map[string]any `json:"data"`
	Total      int64            `json:"total"`
	NextCursor string           `json:"next_cursor"`
}

func (m *measurement) run(ctx context.Context, w io.Writer) error {
	var session struct {
		Token string `json:"access_token"`
	}
	if err := m.call(ctx, http.MethodPost, "/authenticate", map[string]string{"user_id": m.user, "password": m.password}, &session); err != nil {
		return fmt.Errorf("sign in: %w", err)
	}
	m.token = session.Token
	var api document
	if err := m.call(ctx, http.MethodGet, "/openapi.json", nil, &api); err != nil {
		return fmt.Errorf("read the API document: %w", err)
	}
	lists := 0
	for path, operations := range api.Paths {
		get, ok := operations["get"]
		if !ok || strings.Contains(path, "{") {
			continue
		}
		var fields []string
		isList, hasText := false, false
		for _, p := range get.Parameters {
			name := api.Components.Parameters[p.Ref[strings.LastIndexByte(p.Ref, '/')+1:]].Name
			isList, hasText = isList || name == "cursor", hasText || name == "q"
			if field, search := strings.CutPrefix(name, "search."); search {
				fields = append(fields, field)
			}
		}
		if !isList || m.only != "" && path != m.only {
			continue
		}
		lists++
		if err := m.list(ctx, path, fields, hasText); err != nil {
			return err
		}
	}
	return m.report(w, lists)
}

// list measures the requests of one list.
func (m *measurement) list(ctx context.Context, path string, fields []string, text bool) error {
	first, err := m.time(ctx, path)
	if last := len(m.found) - 1; last >= 0 && m.found[last].path == path && m.found[last].status == http.StatusBadRequest {
		m.found = m.found[:last] // it needs further parameters
	}
	if err != nil || first.Total == 0 {
		return err
	}
	for _, query := range m.queries(first, fields, text) {
		found, err := m.time(ctx, path+"?"+query)
		if err != nil {
			return err
		}
		if m.combinations && found.NextCursor != "" && !strings.Contains(query, "offset=") && !strings.Contains(query, "cursor=") {
			if _, err := m.time(ctx, path+"?"+query+"&cursor="+url.QueryEscape(found.NextCursor)); err != nil {
				return err
			}
		}
	}
	return nil
}

// time runs a request twice and notes the times.
func (m *measurement) time(ctx context.Context, path string) (p page, err error) {
	t := timed{path: path}
	for _, took := range []*time.Duration{&t.first, &t.second} {
		p = page{}
		began := m.clock()
		err := m.call(ctx, http.MethodGet, path, nil, &p)
		*took = m.clock() - began
		m.requests++
		if refused, ok := err.(refusal); ok { //nolint:errorlint // returned by call as it is
			t.status = refused.status
		} else if err != nil {
			return p, err
		}
	}
	m.slowest = max(m.slowest, t.first, t.second)
	if m.all {
		fmt.Println(t) //nolint:forbidigo // this is main
	}
	if t.first > m.slow || t.second > m.slow || t.status != 0 {
		m.found = append(m.found, t)
	}
	return p, nil
}

// clock returns the time that has passed, or the processor time of the server.
func (m *measurement) clock() time.Duration {
	if m.pid == 0 {
		return time.Since(began)
	}
	threads, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", m.pid)) // the pattern is valid
	var used time.Duration
	for _, name := range threads {
		var nanoseconds int64
		data, err := os.ReadFile(name) //nolint:gosec // a file of the system
		if err == nil {
			_, err = fmt.Sscan(string(data), &nanoseconds)
		}
		if err != nil {
			continue // the thread has ended
		}
		used += time.Duration(nanoseconds)
	}
	return used
}

var began = time.Now()

// String returns a line of the report.
func (t timed) String() string {
	line := fmt.Sprintf("%8s %8s  %s", t.first.Round(time.Millisecond), t.second.Round(time.Millisecond), t.path)
	if t.status != 0 {
		line += fmt.Sprintf("  status %d", t.status)
	}
	return line
}

// refusal is an answer that is an error.
type refusal struct {
	status int
	body   string
}

func (r refusal) Error() string { return fmt.Sprintf("status %d: %s", r.status, r.body) }

// call sends a request and decodes its answer.
func (m *measurement) call(ctx context.Context, method, path string, body, answer any) error {
	encoded, err := json.Marshal(body)
	if err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(ctx, method, m.server+path, bytes.NewReader(encoded))
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Authorization", "Bearer "+m.token)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	if err != nil {
		return err
	}
	if response.StatusCode >= http.StatusBadRequest {
		return refusal{response.StatusCode, string(content[:min(len(content), 200)])}
	}
	return json.Unmarshal(content, answer)
}

func (m *measurement) report(w io.Writer, lists int) error {
	slices.SortFunc(m.found, func(a, b timed) int { return int(max(b.first, b.second) - max(a.first, a.second)) })
	for _, t := range m.found {
		if _, err := fmt.Fprintln(w, t); err != nil {
			return err
		}
	}
	_, err := fmt.Fprintf(w, "%d requests to %d lists; %d took longer than %s or were rejected; the slowest %s\n", m.requests, lists, len(m.found), m.slow, m.slowest.Round(time.Millisecond))
	return err
}

// texts are searched in lists with the parameter q: words of many records of a data set, of some, of one, and of none.
var texts = []string{"z", "muster", "muster 7", "customer100.example", "quaternion"}

// queries returns the query strings to measure. first is the page without parameters.
func (m *measurement) queries(first page, fields []string, text bool) []string {
	places := []string{"limit=-1", fmt.Sprintf("offset=%d", first.Total/2), fmt.Sprintf("offset=%d", first.Total*3/4), fmt.Sprintf("offset=%d", max(0, first.Total-5))}
	var sorts, distinct, searches []string
	for _, field := range fields {
		sorts = append(sorts, "sort="+field, "sort=-"+field)
		distinct = append(distinct, "distinct="+field)
		searches = append(searches, searchesOf(first.Data, field)...)
	}
	if text {
		for _, words := range texts {
			searches = append(searches, "q="+url.QueryEscape(words))
		}
	}
	var all []string
	if first.NextCursor != "" {
		all = append(all, "cursor="+url.QueryEscape(first.NextCursor))
	}
	for _, list := range [][]string{places, sorts, distinct, searches} {
		all = append(all, list...)
	}
	if !m.combinations {
		return all
	}
	n := 0
	pairs := func(ones, others []string) {
		for _, one := range ones {
			for _, other := range others {
				if n++; n%max(1, m.step) == 0 {
					all = append(all, one+"&"+other)
				}
			}
		}
	}
	pairs(sorts, places)
	pairs(distinct, places)
	pairs(searches, places)
	pairs(sorts, distinct)
	pairs(searches, sorts)
	pairs(searches, distinct)
	for i := range searches {
		pairs(searches[i:i+1], searches[i+1:])
	}
	return all
}

// searchesOf returns searches for a field: for a value of the first rows, a part of it, a range, what is missing and what is there.
func searchesOf(rows []map[string]any, field string) []string {
	search := "search." + field + "="
	searches := []string{search + "null"}
	switch value := sample(rows, field).(type) {
	case string:
		searches = append(searches, search+url.QueryEscape(value))
		if len(value) > 3 {
			searches = append(searches, search+url.QueryEscape("*"+value[1:3]+"*"))
		}
		if len(value) >= len("2006-01-02T") && value[4] == '-' {
			searches = append(searches, search+value[:10], search+"2020-01-01..", search+".."+value[:10])
		} else {
			searches = append(searches, search+"*")
		}
	case bool:
		searches = append(searches, search+"true", search+"false", search+"true,false")
	}
	return searches
}

// sample returns a value of a field in some rows, or nil.
func sample(rows []map[string]any, field string) any {
	for _, row := range rows {
		if value := row[field]; value != nil && value != "" {
			return value
		}
	}
	return nil
}
