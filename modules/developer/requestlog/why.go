package requestlog

import (
	"context"
	"net/http"
	"slices"
	"strings"

	"github.com/google/uuid"

	"kontor/server/access"
	"kontor/server/apierr"
	"kontor/server/endpoint"
)

// The checks of a request, in their order.
const (
	checkPath       = "path"
	checkCaller     = "caller"
	checkScope      = "scope"
	checkGrant      = "endpoint"
	checkPermission = "permission"
	checkAssurance  = "assurance"
	checkSubject    = "subject"
	checkInput      = "input"
	checkRecord     = "record"
	checkState      = "state"
)

// Finding is the result of a check.
type Finding struct {
	Check  string `json:"check" enum:"path,caller,scope,endpoint,permission,assurance,subject,input,record,state"`
	Passed bool   `json:"passed"`
	Text   string `json:"text" example:"The record exists. The caller has no relation to it, and no grant of read on it or on its type." doc:"The result in words, in the language of the request for it."`
}

// findings collects the results in a language.
type findings struct {
	text func(key string, args apierr.Args) string
	all  []Finding
}

func (f *findings) add(check string, passed bool, key string, args apierr.Args) {
	f.all = append(f.all, Finding{check, passed, f.text("requests.why."+key, args)})
}

// explained are the statuses whose cause is found.
var explained = []int{http.StatusBadRequest, http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound, http.StatusMethodNotAllowed,
	http.StatusConflict, http.StatusUnprocessableEntity}

// why returns the checks that a refused request passed and failed. The error of the answer says which check failed. Only whether there
// is a record, and what the caller may do with it, is looked up now: it may have changed since.
func (s *Service) why(ctx context.Context, e entry) ([]Finding, error) {
	f := &findings{all: []Finding{}, text: func(key string, args apierr.Args) string {
		return s.options.Texts.Text(endpoint.Language(ctx), key, args)
	}}
	switch {
	case !slices.Contains(explained, e.status):
		return f.all, nil
	case e.row == nil && e.status == http.StatusMethodNotAllowed:
		f.add(checkPath, false, "no_method", nil)
		return f.all, nil
	case e.row == nil:
		f.add(checkPath, false, "no_path", nil)
		return f.all, nil
	}
	if !e.row.Access.IsPublic() && !f.gate(e) {
		return f.all, nil
	}
	switch e.status {
	case http.StatusForbidden, http.StatusNotFound:
		return f.all, s.explainRecord(ctx, e, f)
	case http.StatusBadRequest, http.StatusUnprocessableEntity:
		key := "input"
		if len(e.fields) == 0 {
			key = "refused_input"
		}
		f.add(checkInput, false, key, apierr.Args{"Code": e.code, "Fields": strings.Join(e.fields, ", ")})
	case http.StatusUnauthorized:
		f.add(checkCaller, false, "refused_proof", apierr.Args{"Code": e.code})
	default:
		f.add(checkState, false, "state", apierr.Args{"Code": e.code})
	}
	return f.all, nil
}

// gate adds the checks before the handler of a row that is not public. It reports whether the request has passed all of them.
func (f *findings) gate(e entry) bool {
	args := apierr.Args{"Endpoint": e.row.Key(), "Scope": e.row.Name}
	if e.kind == kindAnonymous {
		key := "no_credentials"
		if e.presented {
			key = "invalid_credentials"
		}
		f.add(checkCaller, false, key, args)
		return false
	}
	f.add(checkCaller, true, "signed_in", args)
	switch e.reason {
	case "scope":
		f.add(checkScope, false, "no_scope", args)
		return false
	case "no_role", "endpoint":
		key := "no_grant_endpoint"
		if e.reason == "no_role" {
			key = "no_role"
		}
		f.add(checkGrant, false, key, args)
		return false
	}
	if e.row.Access.TakesBearer() {
		f.add(checkGrant, true, "granted_endpoint", args)
	}
	if t, _, ok := e.row.Access.Record(); ok && e.reason == "permission" {
		f.add(checkPermission, false, "no_create", apierr.Args{"Type": t.Name})
		return false
	}
	switch e.code {
	case apierr.StaleSession.Code, apierr.FactorRequired.Code, apierr.PersonRequired.Code:
		f.add(checkAssurance, false, "assurance", apierr.Args{"Code": e.code})
		return false
	case apierr.RightsNotHeld.Code:
		f.add(checkSubject, false, "subject", nil)
		return false
	}
	return true
}

// explainRecord adds why a record was denied or not found.
func (s *Service) explainRecord(ctx context.Context, e entry, f *findings) error {
	t, wanted, ok := e.row.Access.Record()
	id := ""
	if ok {
		id = recordID(e.row, t, e.path)
	}
	if id == "" || e.kind != kindPerson && e.kind != kindService || e.status == http.StatusForbidden && e.code != apierr.NoAccess.Code {
		key := "state"
		if e.status == http.StatusNotFound {
			key = "not_found"
		}
		f.add(checkState, false, key, apierr.Args{"Code": e.code})
		return nil
	}
	exists, allowed, err := s.rights.Look(ctx, e.caller, t, wanted, id)
	if err != nil {
		return err
	}
	args := apierr.Args{"Type": t.Name, "ID": id, "Permission": wanted.String()}
	switch {
	case !exists:
		f.add(checkRecord, false, "no_record", args)
	case !allowed:
		f.add(checkRecord, false, "no_grant_record", args)
	case e.status == http.StatusNotFound:
		f.add(checkRecord, false, "part_missing", args)
	default:
		f.add(checkRecord, false, "allowed_now", args)
	}
	return nil
}

// recordID returns the id in a path that names the record of the row's type, or an empty text.
func recordID(row *endpoint.Endpoint, t access.RecordType, path string) string {
	segments := strings.Split(path, "/")
	for i, segment := range strings.Split(row.Path, "/") {
		if segment != "{id}" && segment != "{"+strings.TrimSuffix(t.Name, "s")+"_id}" || i >= len(segments) {
			continue
		}
		if id, err := uuid.Parse(segments[i]); err == nil {
			return id.String()
		}
	}
	return ""
}
