package privacy

import (
	"bufio"
	"context"
	"fmt"
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

// Export is the form of an export, for the API document. Sections without rows are missing.
type Export struct {
	Kind       personal.Kind `json:"kind"`
	ID         string        `json:"id"`
	ExportedAt store.Time    `json:"exported_at"`

	Customer     []jsontext.Value `json:"customer,omitzero" doc:"An array with the record. So are user, persona, preferences and relationship."`
	Relationship []jsontext.Value `json:"relationship,omitzero"`
	Documents    []jsontext.Value `json:"documents,omitzero" doc:"With their numbers."`
	History      []jsontext.Value `json:"verification_history,omitzero"`
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
	Pictures    []jsontext.Value `json:"pictures,omitzero" doc:"Their content is in base64."`
	Chats       []jsontext.Value `json:"chats_created,omitzero"`
	Messages    []jsontext.Value `json:"messages,omitzero" doc:"Those that the user has written."`

	Notifications []jsontext.Value `json:"notifications,omitzero"`
	Deliveries    []jsontext.Value `json:"deliveries,omitzero"`

	Persona          []jsontext.Value `json:"persona,omitzero"`
	Personas         []jsontext.Value `json:"personas,omitzero" doc:"The links of a user to personas."`
	FormerNames      []jsontext.Value `json:"former_names,omitzero"`
	FormerIdentities []jsontext.Value `json:"former_identities,omitzero"`
	Users            []jsontext.Value `json:"users,omitzero" doc:"The links of a persona to users."`
	Links            []jsontext.Value `json:"links,omitzero"`
}

// exportTime is how long an export may take, with a slow client.
const exportTime = 10 * time.Minute

// export returns the handler that writes the data of persons of a kind. It reads a bounded number of rows at a time and writes
// them at once, so that the size of an export does not matter. A document that ends early, because of a failure, is no JSON.
func (s *Service) export(kind personal.Kind) func(ctx context.Context, r *endpoint.Request) error {
	name := "id"
	if kind == personal.Persona {
		name = "persona_id"
	}
	return func(ctx context.Context, r *endpoint.Request) error {
		id, err := types.ParseID(r.Params[0])
		if err != nil {
			return apierr.Invalid(name, "invalid.uuid")
		}
		subject := personal.Subject{Kind: kind, ID: id}
		if err := s.allowExport(ctx, subject); err != nil {
			return err
		}
		select {
		case s.exports <- struct{}{}:
		default:
			return apierr.TooManyAtOnce.RetryAfter(time.Second)
		}
		endpoint.Report(ctx, endpoint.Event{Kind: endpoint.Reading, Action: "privacy.export", RecID: id}) // the row adds the type
		background := endpoint.With(access.With(s.ctx, access.From(ctx)), &endpoint.Info{Caller: access.From(ctx), Language: endpoint.Language(ctx)})
		response := r.Fiber.Response()
		response.Header.SetContentType(fiber.MIMEApplicationJSON)
		response.Header.Set(fiber.HeaderContentDisposition, fmt.Sprintf(`attachment; filename="%s-%s.json"`, kind, id))
		response.SetBodyStreamWriter(func(w *bufio.Writer) {
			defer func() { <-s.exports }()
			limited, cancel := context.WithTimeout(background, exportTime)
			defer cancel()
			if err := s.write(limited, w, subject); err != nil {
				s.Log.Warn("an export was not completed", "kind", kind, "cause", err)
			}
		})
		return nil
	}
}

// allowExport lets users export themselves, and others who may update the record: it contains what readers do not see. For
// users, that takes the permission for all of them.
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

// write writes the document.
func (s *Service) write(ctx context.Context, w *bufio.Writer, subject personal.Subject) error {
	out := personal.NewWriter(w, map[string]any{"kind": subject.Kind, "id": subject.ID, "exported_at": s.db.Now()})
	owner := s.Owners[subject.Kind] // its record comes first
	others := slices.DeleteFunc(slices.Clone(s.Modules), func(m personal.Module) bool { return m == owner })
	for _, m := range append([]personal.Module{owner}, others...) {
		if err := m.ExportPerson(ctx, s.db, subject, out); err != nil {
			return fmt.Errorf("export of %T: %w", m, err)
		}
	}
	return out.Close()
}
