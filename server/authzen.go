package server

import (
	"net/http"
	"strings"

	"github.com/go-json-experiment/json"

	"kontor/server/apierr"
)

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
