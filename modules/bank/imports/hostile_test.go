package imports_test

import (
	"bytes"
	"fmt"
	"mime/multipart"
	"net/http"
	"slices"
	"strings"
	"testing"

	"kontor/modules/bank/imports"
	"kontor/server/access"
	"kontor/server/servertest"
	"kontor/server/settings"
	"kontor/store"
)

const header = "first_name,last_name,email\n"

func TestImport_RefusesFilesThatAreNoTable(t *testing.T) {
	s := servertest.Start(t, func(s *settings.Settings) { s.Imports.MaxBytes = 1 << 20 })
	c := s.User(access.Advisor)
	for name, hostile := range map[string]struct{ file, field string }{
		"empty":                  {"\n", "file"},
		"a byte order mark":      {"\ufeff", "file"},
		"latin 1":                {header + "Zo\xeb,Keller,zoe@example.ch\n", "file"},
		"latin 1 in the header":  {"first_name,last_name,email,stra\xdfe\n", "file"},
		"UTF-16":                 {"\xff\xfel\x00a\x00s\x00t\x00", "file"},
		"an unclosed quote":      {header + "Anna,\"Keller,anna@example.ch\nBeat,Frei,beat@example.ch\n", "file"},
		"an unclosed, long text": {header + "Anna,\"Keller" + strings.Repeat("x\n", 300<<10) + "\n", "file"},
		"a bare quote":           {header + "Anna,Kel\"ler,anna@example.ch\n", "file"},
		"a huge field":           {header + "Anna," + strings.Repeat("x", 300<<10) + ",anna@example.ch\n", "file"},
		"10,000 columns":         {header + strings.Repeat("x,", 200_000) + "\n", "file"},
		"10,000 column names":    {strings.Repeat("x,", 10_000) + "last_name,email\n", "x"},
		"a repeated column":      {"last_name,email,last_name\nKeller,anna@example.ch,Frei\n", "last_name"},
		"an unknown column":      {"last_name,email,shoe_size\nKeller,anna@example.ch,38\n", "shoe_size"},
		"no e-mail address":      {"last_name,first_name\nKeller,Anna\n", "email"},
		"mixed separators":       {"last_name;email,first_name\n", "last_name;email"},
		"control characters":     {"last_name,email,\"a\x00\nb\"\n", "a??b"},
	} {
		t.Run(name, func(t *testing.T) {
			answer := send(c, "", hostile.file).Expect(t, http.StatusBadRequest).JSON(t)
			details, _ := answer["details"].(map[string]any)
			if answer["code"] != "common.invalid_input" || details[hostile.field] == nil || details[hostile.field] == "" {
				t.Errorf("got %v", answer)
			}
		})
	}
	long := strings.Repeat("x", 300<<10)
	for _, row := range []string{"Anna," + long + ",anna@example.ch\n", long + "\n"} {
		answer := send(c, "", header+"\"Anna\nMaria\",Keller,anna@example.ch\n"+row).Expect(t, http.StatusBadRequest)
		if !strings.Contains(answer.Body, "line 4") {
			t.Errorf("the long row is in line 4: %s", answer.Body)
		}
	}
	send(c, "", header+strings.Repeat("Anna,Keller,anna@example.ch\n", 40_000)).ExpectError(t, http.StatusRequestEntityTooLarge, "common.payload_too_large")
	send(c, "", "").Expect(t, http.StatusBadRequest)
	c.With("Content-Type", "application/json").Do("POST", path, `{}`).Expect(t, http.StatusUnsupportedMediaType)
	send(c, "?on_duplicate=merge", header).Expect(t, http.StatusBadRequest)
	send(c, "?dry_run=maybe", header).Expect(t, http.StatusBadRequest)
	if i := c.Do("GET", "/v1/imports", nil).Expect(t, http.StatusOK).JSON(t); i["total"] != 0.0 {
		t.Errorf("%v imports of refused files", i["total"])
	}
	var chunks int
	if err := s.DB.QueryRow(t.Context(), `SELECT COUNT(*) FROM import_chunks`).Scan(&chunks); err != nil || chunks > 0 {
		t.Errorf("%d chunks of refused files remain, %v", chunks, err)
	}
}

func TestImport_ReadsWhatSpreadsheetsWrite(t *testing.T) {
	for name, one := range map[string]struct{ file, want string }{
		"header only":          {header, "done 0/0 created 0 updated 0 duplicates 0 rejected 0"},
		"without a line end":   {header + "Anna,Keller,anna@example.ch", "done 1/1 created 1 updated 0 duplicates 0 rejected 0"},
		"CRLF and empty lines": {"\ufeff" + strings.ReplaceAll(header, "\n", "\r\n") + "\r\nAnna,Keller,anna@example.ch\r\n\r\n", "done 1/1 created 1 updated 0 duplicates 0 rejected 0"},
		"semicolons":           {"first_name;last_name;email\nAnna;\"Keller; Frei\";anna@example.ch\n", "done 1/1 created 1 updated 0 duplicates 0 rejected 0"},
		"commas in the rows":   {"first_name;last_name;email\nAnna,Keller,anna@example.ch\n", "done 1/1 created 0 updated 0 duplicates 0 rejected 1"},
		"NUL":                  {header + "Anna,Kel\x00ler,anna@example.ch\n", "done 1/1 created 0 updated 0 duplicates 0 rejected 1"},
		"a line break":         {header + "Anna,\"Kel\nler\",anna@example.ch\nBeat,Frei,beat@example.ch\n", "done 2/2 created 1 updated 0 duplicates 0 rejected 1"},
		"an erased customer":   {"first_name,last_name,email,erased_at\n,,erased@erased.invalid,2026-01-01T00:00:00Z\n", "done 1/1 created 0 updated 0 duplicates 0 rejected 1"},
		"metadata":             {"first_name,last_name,email,metadata\nA,B,c@example.ch,\"{\"\"a\"\":1,\"\"a\"\":2}\"\nA,B,c@example.ch,[1]\nA,B,c@example.ch,\"{\"\"external_id\"\":17}\"\n", "done 3/3 created 1 updated 0 duplicates 0 rejected 2"},
		"two external ids":     {"external_id,last_name,first_name,email,metadata\nK-1,B,A,c@example.ch,\"{\"\"external_id\"\":\"\"K-2\"\"}\"\nK-1,B,A,c@example.ch,{}\n", "done 2/2 created 1 updated 0 duplicates 0 rejected 1"},
		"a long external id":   {"external_id,last_name,first_name,email\n" + strings.Repeat("x", 201) + ",B,A,c@example.ch\n", "done 1/1 created 0 updated 0 duplicates 0 rejected 1"},
	} {
		t.Run(name, func(t *testing.T) {
			s := servertest.Start(t)
			c := s.User(access.Advisor)
			expect(t, run(t, s, c, "?dry_run=true", one.file), one.want)
			if n := total(t, c); n != 0 {
				t.Errorf("the dry run has created %d customers", n)
			}
			expect(t, run(t, s, c, "", one.file), one.want)
		})
	}
}

func TestImport_BelongsToItsCaller(t *testing.T) {
	s := servertest.Start(t)
	owner, other, customer := s.User(access.Advisor), s.User(access.Advisor), s.User(access.Customer)
	i := run(t, s, owner, "", header+"Anna,,\n")
	one := "/v1/imports/" + i.ID
	servertest.Run(t, s, []servertest.Scenario{
		{Name: "another advisor", As: other, Method: "GET", Path: one, Status: 404, Contains: []string{"imports.import_not_found"}},
		{Name: "the rows of another advisor", As: other, Method: "GET", Path: one + "/rejected", Status: 404, Excludes: []string{"last_name"}},
		{Name: "the list of another advisor", As: other, Method: "GET", Path: "/v1/imports", Status: 200, Contains: []string{`"total":0`}, Excludes: []string{i.ID}},
		{Name: "an unknown one", As: owner, Method: "GET", Path: "/v1/imports/" + store.NewID(), Status: 404},
		{Name: "an administrator", As: s.Admin(), Method: "GET", Path: one, Status: 200, Contains: []string{i.SHA256}},
		{Name: "the list of an administrator", As: s.Admin(), Method: "GET", Path: "/v1/imports?search.state=done", Status: 200, Contains: []string{i.ID}},
		{Name: "a customer", As: customer, Method: "GET", Path: one, Status: 403},
		{Name: "an import by a customer", As: customer.With("Content-Type", "text/csv"), Method: "POST", Path: path, Body: header, Status: 403},
		{Name: "without a token", Method: "GET", Path: one, Status: 401},
	})
	// Of what POST /v1/customers/import and POST /v1/customers need, one alone does not do.
	half := s.User(access.Customer)
	s.Admin().Create("/v1/rbac/grants", map[string]any{"user_id": half.UserID, "endpoint": "POST " + path})
	send(half, "", header).Expect(t, http.StatusAccepted)
	reader := s.User()
	for _, endpoint := range []string{"POST " + path, "GET /v1/customers"} {
		s.Admin().Create("/v1/rbac/grants", map[string]any{"user_id": reader.UserID, "endpoint": endpoint})
	}
	send(reader, "", header).Expect(t, http.StatusForbidden)
}

func TestImport_OneAtATime(t *testing.T) {
	s := servertest.Start(t)
	c, other := s.User(access.Advisor), s.User(access.Advisor)
	var first imports.Import
	send(c, "", file(0, 40)).Expect(t, http.StatusAccepted).Into(t, &first)
	answer := send(c, "", file(100, 1))
	answer.ExpectError(t, http.StatusConflict, "imports.import_unfinished")
	send(other, "", file(200, 40)).Expect(t, http.StatusAccepted)
	work(t, s)
	expect(t, get(t, c, first.ID), "done 40/40 created 40 updated 0 duplicates 0 rejected 0")
	send(c, "", file(100, 1)).Expect(t, http.StatusAccepted)
	if n := total(t, c); n != 80 {
		t.Errorf("there are %d customers, want 80", n)
	}
}

func TestImport_TakesForms(t *testing.T) {
	s := servertest.Start(t)
	c := s.User(access.Advisor)
	form := func(member string) servertest.Response {
		var body bytes.Buffer
		w := multipart.NewWriter(&body)
		part, err := w.CreateFormFile(member, "customers.csv")
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprint(part, file(0, 2))
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		return c.With("Content-Type", w.FormDataContentType()).Do("POST", path, body.Bytes())
	}
	form("other").Expect(t, http.StatusBadRequest)
	form("file").Expect(t, http.StatusAccepted)
	c.With("Content-Type", "multipart/form-data").Do("POST", path, "x").Expect(t, http.StatusBadRequest)
	work(t, s)
	if n := total(t, c); n != 2 {
		t.Errorf("there are %d customers, want 2", n)
	}
}

// The file is stored encrypted, and no log and no rejected row has its values.
func TestImport_StoresNoValueOfTheFile(t *testing.T) {
	s := servertest.Start(t)
	c := s.User(access.Advisor)
	const secret = "Geheimnis"
	send(c, "", header+secret+","+secret+","+secret+"\n").Expect(t, http.StatusAccepted)
	content, err := store.All(t.Context(), s.DB, func(row store.Scanner) (b []byte, err error) {
		err = row.Scan(&b)
		return b, err
	}, `SELECT content FROM import_chunks`)
	if err != nil || len(content) != 1 || bytes.Contains(content[0], []byte(secret)) {
		t.Errorf("the stored file: %v", err)
	}
	work(t, s)
	texts, err := store.All(t.Context(), s.DB, store.Text, `SELECT field || text_key || text_args FROM import_rejections`)
	if err != nil || len(texts) != 1 || slices.ContainsFunc(texts, func(text string) bool { return strings.Contains(text, secret) }) {
		t.Errorf("got %v %v", texts, err)
	}
}
