package app_test

import (
	"bytes"
	"mime/multipart"
)

// screening loads an invented list, compares a name and a customer with it, and drops it.
func (s *scenario) screening() {
	var form bytes.Buffer
	w := multipart.NewWriter(&form)
	file, err := w.CreateFormFile("file", "targets.simple.csv")
	if err == nil {
		_, err = file.Write([]byte("id,schema,name,aliases,birth_date,countries,sanctions,dataset\nNK-1,Person,Viktor Beispielow,,1960,ru,,Sample\n"))
	}
	if err != nil {
		s.Fatal(err)
	}
	w.WriteField("name", "Sample")
	w.Close()
	var list struct{ ID string }
	s.do(s.admin.With("Content-Type", w.FormDataContentType()), "POST", "/v1/screening/lists", form.Bytes()).Into(s, &list)
	s.do(s.admin, "GET", "/v1/screening/lists", nil)
	s.do(s.admin, "POST", "/v1/screening/check", map[string]any{"name": "Beispielow Viktor"})
	s.id(s.admin, "/v1/customers", map[string]any{"first_name": "Viktor", "last_name": "Beispielow", "email": "viktor@example.ch"})
	if err := s.server.Screening.Rescreen(s.Context()); err != nil {
		s.Fatal(err)
	}
	var hits struct{ Data []struct{ ID string } }
	s.do(s.admin, "GET", "/v1/screening/hits", nil).Into(s, &hits)
	if len(hits.Data) != 1 {
		s.Fatalf("%d hits, want 1", len(hits.Data))
	}
	s.do(s.admin, "GET", "/v1/screening/hits/"+hits.Data[0].ID, nil)
	s.do(s.admin, "POST", "/v1/screening/hits/"+hits.Data[0].ID+"/decide", map[string]any{"decision": "dismissed", "reason": "Another person."})
	s.do(s.admin, "DELETE", "/v1/screening/lists/"+list.ID, nil)
	s.do(s.admin.With("Content-Type", w.FormDataContentType()), "POST", "/v1/screening/lists", form.Bytes()) // one remains for the forms of records
}
