package app_test

import (
	"bytes"
	"mime/multipart"
)

// screening loads an invented list, compares a name with it, and drops it.
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
	s.do(s.admin, "DELETE", "/v1/screening/lists/"+list.ID, nil)
	s.do(s.admin.With("Content-Type", w.FormDataContentType()), "POST", "/v1/screening/lists", form.Bytes()) // one remains for the forms of records
}
