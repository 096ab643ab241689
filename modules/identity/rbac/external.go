package rbac

import (
	"context"
	"errors"
	"net/http"
	"regexp"
	"slices"
	"strings"

	"kontor/modules/kit/types"
	"kontor/modules/kit/validate"
	"kontor/server/access"
	"kontor/server/apierr"
	"kontor/server/endpoint"
	"kontor/store"
)

// Record types of other applications. Kontor has none of their records: a grant names a record by any text. It decides about them for
// other programs, see [Service.Ask]. Their grants are in a table of their own, which no statement about records of Kontor reads.

const (
	maxExternalPermissions = 50
	maxExternalName        = 64
	maxExternalID          = 200 // characters of the id of a record
	maxTypeDescription     = 500
)

// externalName is the form of the names of external record types and of their permissions. Stored lists of names have commas.
var externalName = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_.:/-]*$`)

// externalTypeInput describes a record type of another application.
type externalTypeInput struct {
	Name        string   `json:"name" maxLength:"64" example:"invoice" doc:"A letter, then letters, digits and the characters . _ : / -. Names that Kontor uses are refused."`
	Description string   `json:"description" required:"false" maxLength:"500" example:"Invoices of the accounting system"`
	Permissions []string `json:"permissions" minItems:"1" maxItems:"50" example:"approve" doc:"What can be granted on records of the type, in the words of the application."`
}

// Validate checks name, description and permissions.
func (in *externalTypeInput) Validate(v *apierr.Fields) {
	in.Name = checkExternalName(v, "name", in.Name)
	in.Description = validate.Text(v, "description", in.Description, maxTypeDescription)
	switch {
	case len(in.Permissions) == 0:
		v.Add("permissions", "invalid.min_items", apierr.Args{"Min": 1})
	case len(in.Permissions) > maxExternalPermissions:
		v.Add("permissions", "invalid.max_items", apierr.Args{"Max": maxExternalPermissions})
		return
	}
	for i := range in.Permissions {
		in.Permissions[i] = checkExternalName(v, "permissions", in.Permissions[i])
	}
	in.Permissions = unique(in.Permissions)
}

func checkExternalName(v *apierr.Fields, field, name string) string {
	name = validate.Required(v, field, name, maxExternalName)
	if name != "" && !externalName.MatchString(name) {
		v.Add(field, "invalid.external_name")
	}
	return name
}

// createExternalType adds a record type of another application. It is for administrators, because grants of others name the type. It
// returns apierr.RecordTypeExists for a name that a type of Kontor or of another application has.
func (s *Service) createExternalType(ctx context.Context, in externalTypeInput) (RecordType, error) {
	caller := access.From(ctx)
	if !caller.Administrator() {
		return RecordType{}, apierr.NoAccess
	}
	if slices.ContainsFunc(access.RecordTypes(), func(t access.RecordType) bool { return strings.EqualFold(t.Name, in.Name) }) {
		return RecordType{}, apierr.RecordTypeExists
	}
	t := RecordType{ID: store.NewID(), Name: in.Name, Description: in.Description, Permissions: in.Permissions, External: true}
	err := s.db.InTx(ctx, func(tx *store.Tx) error {
		if err := insertExternalType(ctx, tx, t, caller.UserID); err != nil {
			return err
		}
		tx.Respond(t)
		return externalTypeProof.Audit(ctx, tx, "rbac.record_types.create", t.ID, nil)
	})
	if errors.Is(err, store.ErrDuplicate) {
		err = apierr.RecordTypeExists.Wrap(err)
	}
	return t, err
}

// deleteExternalType deletes a record type of another application on which there is no grant. It returns apierr.RecordTypeNotFound,
// apierr.RecordTypeBuiltIn and apierr.RecordTypeInUse.
func (s *Service) deleteExternalType(ctx context.Context, in idInput) (endpoint.Message, error) {
	if !access.From(ctx).Administrator() {
		return endpoint.Message{}, apierr.NoAccess
	}
	err := s.db.InTx(ctx, func(tx *store.Tx) error {
		t, err := selectExternalType(ctx, tx, in.ID)
		if err != nil {
			return err
		}
		if !t.External {
			return apierr.RecordTypeBuiltIn
		}
		before, err := readExternalType(ctx, tx, in.ID)
		if err != nil {
			return err
		}
		var used int
		if err := tx.QueryRow(ctx, countGrantsOnType, t.Name).Scan(&used); err != nil {
			return err
		}
		if used > 0 {
			return apierr.RecordTypeInUse
		}
		if _, err := tx.Exec(ctx, deleteRecordType, in.ID); err != nil {
			return err
		}
		return externalTypeProof.Audit(ctx, tx, "rbac.record_types.delete", in.ID, before.Answer)
	})
	return endpoint.Confirm(ctx, s.Texts, "rbac.record_type_deleted"), err
}

// externalTypeEndpoints returns the rows of external record types.
func (s *Service) externalTypeEndpoints() []endpoint.Endpoint {
	return []endpoint.Endpoint{
		{Name: "rbac.record_types.create", Method: http.MethodPost, Path: "/v1/rbac/record-types", Access: access.On(access.Grants, access.Create),
			Subject:   access.NoSubject("a new record type gives no rights"),
			Assurance: endpoint.SecondFactor,
			Summary:   "Add a record type of another application.",
			Doc: endpoint.Doc{Description: "For administrators. Kontor decides about records of the type for other programs, by `POST /access/v1/evaluation`. " +
				"Grants on them name a record by any text of up to 200 characters."},
			Faults: []apierr.Kind{apierr.RecordTypeExists}, Handle: endpoint.JSON(http.StatusCreated, s.createExternalType)},
		{Name: "rbac.record_types.delete", Method: http.MethodDelete, Path: "/v1/rbac/record-types/{id}", Access: access.On(access.Grants, access.Delete),
			Subject:   access.NoSubject("a record type without grants gives no rights"),
			Assurance: endpoint.SecondFactor,
			Summary:   "Delete a record type of another application.",
			Faults:    []apierr.Kind{apierr.RecordTypeNotFound, apierr.RecordTypeBuiltIn, apierr.RecordTypeInUse},
			Handle:    endpoint.JSON(http.StatusOK, s.deleteExternalType)},
	}
}

// external reports whether a grant is on a record type of another application.
func (g Grant) external() bool {
	if g.RecType == nil {
		return false
	}
	_, own := access.LookupType(*g.RecType)
	return !own
}

// validateExternal checks what a grant on another application's record type says, as far as it can be checked without the type.
func (in *GrantInput) validateExternal(v *apierr.Fields) {
	in.external = true
	_, err := types.Line(in.RecID, maxExternalID)
	addRule(v, "rec_id", err, maxExternalID)
	switch {
	case len(in.Permissions) == 0:
		v.Add("permissions", "invalid.required")
	case len(in.Permissions) > maxExternalPermissions:
		v.Add("permissions", "invalid.max_items", apierr.Args{"Max": maxExternalPermissions})
	default:
		in.Permissions = unique(slices.Clone(in.Permissions))
	}
}

// checkExternal checks that a grant names a record type of another application, and permissions of that type.
func checkExternal(ctx context.Context, q store.Querier, in GrantInput) error {
	declared, err := externalPermissions(ctx, q, in.RecType)
	switch {
	case err != nil:
		return err
	case declared == nil:
		return apierr.Invalid("rec_type", "invalid.unknown_record_type")
	}
	for _, name := range in.Permissions {
		if !slices.Contains(declared, name) {
			return apierr.Invalid("permissions", "invalid.one_of", apierr.Args{"Values": strings.Join(declared, ", ")})
		}
	}
	return nil
}
