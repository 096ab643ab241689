package privacy

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/gofiber/fiber/v2"

	"kontor/modules/kit/personal"
	"kontor/modules/kit/types"
	"kontor/server/access"
	"kontor/server/apierr"
	"kontor/server/endpoint"
	"kontor/store"
)

// Export is the form of an export and of a report, for the API document. Sections without rows are missing. A test compares it with
// the sections that modules declare.
type Export struct {
	Kind       personal.Kind `json:"kind"`
	ID         string        `json:"id"`
	ExportedAt store.Time    `json:"exported_at"`

	Customer     []jsontext.Value `json:"customer,omitzero" doc:"An array with the record. So are user, persona, preferences and relationship."`
	Relationship []jsontext.Value `json:"relationship,omitzero"`
	LegalHold    []jsontext.Value `json:"legal_hold,omitzero" doc:"In reports only."`
	Documents    []jsontext.Value `json:"documents,omitzero" doc:"Their numbers are masked for readers who may not update the customer."`
	Decisions    []jsontext.Value `json:"decisions,omitzero" doc:"Decisions that needed a second person, also pending ones; for reviewers and in reports only."`
	History      []jsontext.Value `json:"verification_history,omitzero"`
	Case         []jsontext.Value `json:"case,omitzero" doc:"The open verification, as reviewers see it in their queue."`
	Hits         []jsontext.Value `json:"screening_hits,omitzero" doc:"Matches with sanctions lists, also of payers. In reports only: the person must not learn of them."`
	Payers       []jsontext.Value `json:"payers,omitzero"`
	Tasks        []jsontext.Value `json:"tasks,omitzero"`
	Files        []jsontext.Value `json:"files,omitzero" doc:"Of a customer those of documents and tasks, of a user those in chats."`
	FileContents []jsontext.Value `json:"file_contents,omitzero" doc:"The content of the files in pieces, in base64: file_id, number from 0, content."`

	User        []jsontext.Value `json:"user,omitzero"`
	Credentials []jsontext.Value `json:"credentials,omitzero"`
	Sessions    []jsontext.Value `json:"sessions,omitzero"`
	Devices     []jsontext.Value `json:"devices,omitzero"`
	Factors     []jsontext.Value `json:"factors,omitzero" doc:"Without keys and secrets."`
	Identities  []jsontext.Value `json:"identities,omitzero" doc:"Linked accounts at the provider."`
	Preferences []jsontext.Value `json:"preferences,omitzero"`
	Views       []jsontext.Value `json:"views,omitzero" doc:"Saved views of lists."`
	Pictures    []jsontext.Value `json:"pictures,omitzero" doc:"Their content is in base64."`
	Chats       []jsontext.Value `json:"chats_created,omitzero"`
	Messages    []jsontext.Value `json:"messages,omitzero" doc:"Those that the user has written."`
	Bills       []jsontext.Value `json:"bills,omitzero" doc:"QR-bills that the user has kept."`
	Imports     []jsontext.Value `json:"imports,omitzero" doc:"Files that the user has imported, without their content."`

	Notifications []jsontext.Value `json:"notifications,omitzero"`
	Deliveries    []jsontext.Value `json:"deliveries,omitzero" doc:"Without one-time codes and links of invitations."`

	Persona          []jsontext.Value `json:"persona,omitzero"`
	Personas         []jsontext.Value `json:"personas,omitzero" doc:"The links of a user to personas."`
	FormerNames      []jsontext.Value `json:"former_names,omitzero"`
	FormerIdentities []jsontext.Value `json:"former_identities,omitzero"`
	Users            []jsontext.Value `json:"users,omitzero" doc:"The links of a persona to users."`
	Links            []jsontext.Value `json:"links,omitzero"`
}

// exportTime is how long an export may take, with a slow client.
const exportTime = 10 * time.Minute

// document is what an endpoint writes about a person.
type document struct {
	action   string // of its entry in the audit trail
	file     string // begins the name of the file, after the kind
	complete bool   // all data, without access checks of single records
	allow    func(ctx context.Context, s personal.Subject) error
}

// send returns the handler that writes a document about persons of a kind. It reads a bounded number of rows at a time and writes
// them at once, so that the size of a document does not matter. A document that ends early, because of a failure, is no JSON.
func (s *Service) send(kind personal.Kind, d document) func(ctx context.Context, r *endpoint.Request) error {
	return func(ctx context.Context, r *endpoint.Request) error {
		id, err := parseSubject(kind, r.Params[0])
		if err != nil {
			return err
		}
		subject := personal.Subject{Kind: kind, ID: id}
		if err := d.allow(ctx, subject); err != nil {
			return err
		}
		head, release := r.Fiber.Method() == http.MethodHead, func() {}
		if !head {
			if release, err = endpoint.BeginExport(ctx); err != nil {
				return err
			}
			endpoint.Report(ctx, endpoint.Event{Kind: endpoint.Reading, Action: d.action, RecID: id}) // the row adds the type
		}
		response := r.Fiber.Response()
		response.Header.SetContentType(fiber.MIMEApplicationJSON)
		response.Header.Set(fiber.HeaderContentDisposition, fmt.Sprintf(`attachment; filename="%s%s%s.json"`, kind, d.file, id))
		if head {
			response.Header.SetContentLength(-1)
			return nil
		}
		background := endpoint.Detach(s.ctx, ctx)
		response.SetBodyStreamWriter(func(w *bufio.Writer) {
			defer release()
			limited, cancel := context.WithTimeout(background, exportTime)
			defer cancel()
			if err := s.write(limited, w, subject, d); err != nil {
				s.Log.Warn("an export was not completed", "kind", kind, "cause", err)
			}
		})
		return nil
	}
}

// allowExport lets users export themselves, and others who may update the record. For users, that takes the permission for all of
// them. The export contains what the caller may read, see [personal.Section].
func (s *Service) allowExport(ctx context.Context, subject personal.Subject) error {
	if caller := access.From(ctx); subject.Kind == personal.User && caller.UserID != subject.ID {
		if err := s.Users.AllowUser(ctx, s.db, subject.ID, access.Read); err != nil {
			return err
		}
		if !caller.May(access.Users, access.Update) {
			return apierr.NoAccess
		}
		return nil
	}
	return s.allow(ctx, s.db, subject, access.Update)
}

// allowReport lets staff who may read all records of the kind. That they may call the endpoint is a right of its own.
func (s *Service) allowReport(ctx context.Context, subject personal.Subject) error {
	if err := s.allow(ctx, s.db, subject, access.Read); err != nil {
		return err
	}
	if caller := access.From(ctx); !caller.Staff() || !caller.May(recordTypes[subject.Kind], access.ReadAll) {
		return apierr.NoAccess
	}
	return nil
}

// allowErasure lets callers who may delete the record of the person.
func (s *Service) allowErasure(ctx context.Context, subject personal.Subject) error {
	return s.allow(ctx, s.db, subject, access.Delete)
}

// find returns an [endpoint.Endpoint.Find] for an operation on persons of a kind.
func (s *Service) find(kind personal.Kind, allow func(context.Context, personal.Subject) error) func(context.Context, []string, any) error {
	return func(ctx context.Context, ids []string, _ any) error {
		id, err := parseSubject(kind, ids[0])
		if err != nil {
			return err
		}
		return allow(ctx, personal.Subject{Kind: kind, ID: id})
	}
}

// parseSubject parses the id in the path of an operation on a person.
func parseSubject(kind personal.Kind, given string) (string, error) {
	id, err := types.ParseID(given)
	if err == nil {
		return id, nil
	}
	name := "id"
	if kind == personal.Persona {
		name = "persona_id"
	}
	return "", apierr.Invalid(name, "invalid.uuid")
}

// sections returns the sections about persons of a kind, those of the module that owns their record first.
func (s *Service) sections(kind personal.Kind) []personal.Section {
	var all []personal.Section
	owner := s.Owners[kind]
	others := slices.DeleteFunc(slices.Clone(s.Modules), func(m personal.Module) bool { return m == owner })
	for _, m := range append([]personal.Module{owner}, others...) {
		for _, section := range m.PersonalSections() {
			if section.Kind == kind {
				all = append(all, section)
			}
		}
	}
	return all
}

// write writes the document.
func (s *Service) write(ctx context.Context, w *bufio.Writer, subject personal.Subject, d document) error {
	out := personal.NewWriter(w, map[string]any{"kind": subject.Kind, "id": subject.ID, "exported_at": s.db.Now()})
	allow := func(ctx context.Context) error { return d.allow(ctx, subject) }
	for _, section := range s.sections(subject.Kind) {
		if err := section.Write(ctx, s.db, subject, d.complete, out, allow); err != nil {
			return fmt.Errorf("section %s: %w", section.Name, err)
		}
	}
	return out.Close()
}
