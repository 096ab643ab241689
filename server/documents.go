package server

import (
	"context"
	"embed"
	"net/http"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/gofiber/fiber/v2"

	"kontor/locales"
	"kontor/server/apierr"
	"kontor/server/endpoint"
	"kontor/server/openapi"
	"kontor/server/static"
)

// Document builds the API document. The error lists everything that rows and types do not describe.
func (s *Server) Document() (*openapi.Document, error) {
	return openapi.Build(openapi.Options{Table: s.Endpoints, BaseURL: s.BaseURL, Health: health{}, Text: s.documentText})
}

// makeDocument builds the document. Gaps are programming errors that tests find; the document is useful without them.
func (s *Server) makeDocument() (static.File, error) {
	built, err := s.Document()
	if err != nil {
		s.Log.Warn("the API document is incomplete", "cause", err)
	}
	plain, err := built.JSON()
	return static.NewCompressed(fiber.MIMEApplicationJSON, plain), err
}

// documentText returns the text of an error for the document. Its placeholders stay general: the same text has other numbers
// in other operations.
func (s *Server) documentText(key string) string {
	return s.Texts.Text(locales.Default, key, map[string]any{"Max": "N", "Limit": "of the setting", "Time": "that time", "Explanation": "The file cannot be read."})
}

// serveDocument sends the document, compressed to those who take it.
func (s *Server) serveDocument(_ context.Context, r *endpoint.Request) error {
	d, err := s.document()
	if err != nil {
		return apierr.ServerError.Wrap(err)
	}
	d.Send(r.Fiber, "no-cache")
	return nil
}

// GoClient contains the sources of the Go client below client/, with their tests. [kontor/server/sdk] makes a module of them.
//
//go:embed client/*.go
var GoClient embed.FS

// maxEchoedID bounds the request id that an answer repeats, in bytes.
const maxEchoedID = 1024

// echoRequestID returns the request id of a client to them as it is, where the AuthZEN standard asks for it (section "Request
// Identification in a Response"): there it is an arbitrary text. Logs and the audit trail have the id of identify.go.
func (s *Server) echoRequestID(r *call) error {
	if !r.row.AuthZEN {
		return nil
	}
	sent := r.fiber.Request().Header.PeekCanonical(nameRequestID)
	if len(sent) == 0 || len(sent) > maxEchoedID {
		return nil
	}
	for _, b := range sent {
		if b < ' ' && b != '\t' || b == 0x7f { // no header could have it
			return nil
		}
	}
	r.fiber.Response().Header.SetCanonical(nameRequestID, sent) // it copies them
	return nil
}

// failAuthZEN writes an error in the form of the AuthZEN standard (section "Error Responses"): a message. It is a JSON string, so
// that every answer of these rows is JSON. A body that cannot be read is a bad request, whatever is wrong with it.
func (s *Server) failAuthZEN(r *call, e *apierr.Error) {
	status := e.Status
	if status == http.StatusUnsupportedMediaType {
		status = http.StatusBadRequest
	}
	message := s.Texts.Text(r.Language, "error."+e.Code, e.Args)
	var fields []string
	for field, text := range e.Fields.All {
		fields = append(fields, field+": "+s.Texts.Text(r.Language, text.Key, text.Args))
	}
	if len(fields) > 0 {
		message += " " + strings.Join(fields, " ")
	}
	body, err := json.Marshal(message)
	if err != nil {
		body = []byte(`""`)
	}
	s.writeJSON(r, status, body)
}
