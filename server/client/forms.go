package client

import (
	"bytes"
	"fmt"
	"mime/multipart"
	"net/textproto"
	"reflect"
	"strings"
)

// encodeForm encodes a struct as multipart/form-data, by the names of its json tags.
func encodeForm(form any) (body []byte, media string, err error) {
	var b bytes.Buffer
	w := multipart.NewWriter(&b)
	v := reflect.ValueOf(form)
	for field, value := range v.Fields() {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		file, ok := value.Interface().(File)
		if !ok {
			if !value.IsZero() {
				err = w.WriteField(name, fmt.Sprint(value.Interface()))
			}
		} else {
			err = writeFile(w, name, file)
		}
		if err != nil {
			return nil, "", err
		}
	}
	if err := w.Close(); err != nil {
		return nil, "", err
	}
	return b.Bytes(), w.FormDataContentType(), nil
}

func writeFile(w *multipart.Writer, name string, file File) error {
	if file.Name == "" {
		file.Name = "file"
	}
	if file.MediaType == "" {
		file.MediaType = "application/octet-stream"
	}
	part, err := w.CreatePart(textproto.MIMEHeader{
		"Content-Disposition": {multipart.FileContentDisposition(name, file.Name)}, "Content-Type": {file.MediaType},
	})
	if err == nil {
		_, err = part.Write(file.Data)
	}
	return err
}
