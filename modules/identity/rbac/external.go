package rbac

import (
	"context"
	"errors"
	"net/http"
	"regexp"
	"slices"
	"strings"

	"kontor/modules/kit/list"
	"kontor/modules/kit/records"
	"kontor/modules/kit/validate"
	"kontor/server/access"
	"kontor/server/apierr"
	"kontor/server/endpoint"
	"kontor/store"
)

// Record types of other applications. Kontor has none of their records: a grant names a record by any text. It decides about them for
// other programs, see [Service.Ask]. Their grants are in a table of their own, which no statement about records of Kontor reads.

const (
	maxExternalName    = 64
	maxExternalID      = 200 // characters of the id of a record
	maxTypeDescription = 500
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
	if len(in.Permissions) == 0 {
		v.Add("permissions", "invalid.min_items", apierr.Args{"Min": 1})
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
		_, err := tx.Exec(ctx, insertExternalTypeRow, t.ID, t.Name, t.Description, strings.Join(t.Permissions, ","), tx.Now(), caller.UserID)
		if err != nil {
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
func (s *Service) deleteExternalType(ctx context.Context, in endpoint.ByID) (endpoint.Message, error) {
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

func (s *Service) findExternalType(ctx context.Context, ids []string, _ any) error {
	if !access.From(ctx).Administrator() {
		return apierr.NoAccess
	}
	_, err := selectExternalType(ctx, s.db, ids[0])
	return err
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
			Assurance: endpoint.SecondFactor, Find: s.findExternalType,
			Summary: "Delete a record type of another application.",
			Faults:  []apierr.Kind{apierr.RecordTypeNotFound, apierr.RecordTypeBuiltIn, apierr.RecordTypeInUse},
			Handle:  endpoint.JSON(http.StatusOK, s.deleteExternalType)},
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
	validate.Line(v, "rec_id", in.RecID, maxExternalID)
	if len(in.Permissions) == 0 {
		v.Add("permissions", "invalid.required")
	}
	in.Permissions = unique(slices.Clone(in.Permissions))
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

const (
	insertExternalTypeRow = `
		INSERT INTO record_types (id, name, description, permissions, created_at, created_by) VALUES ($1, $2, $3, $4, $5, $6)`
	deleteRecordType    = `DELETE FROM record_types WHERE id = $1`
	selectRecordType    = `SELECT ` + typeColumns + ` FROM record_types WHERE id = $1`
	selectTypeOrigin    = `SELECT created_at, created_by FROM record_types WHERE id = $1 AND permissions <> ''`
	selectPermissionsOf = `SELECT permissions FROM record_types WHERE name = $1 AND permissions <> ''`
	countGrantsOnType   = `SELECT COUNT(*) FROM grant_records WHERE rec_type = $1`

	selectExternalHeld = `
		SELECT 1 FROM external_grants
		WHERE rec_type = $2 AND rec_id IN ($3, '') AND permission = $4 AND principal_id IN (` + records.Principals + `) LIMIT 1`
)

// typeColumns are the columns of a record type.
const typeColumns = "id, name, description, permissions"

func scanType(row list.Row) (RecordType, error) {
	var t RecordType
	var permissions string
	err := row.Scan(&t.ID, &t.Name, &t.Description, &permissions)
	if t.External = permissions != ""; t.External {
		t.Permissions = strings.Split(permissions, ",")
	} else {
		t.Permissions = access.All.Names()
	}
	return t, err
}

func selectExternalType(ctx context.Context, q store.Querier, id string) (RecordType, error) {
	t, err := scanType(q.QueryRow(ctx, selectRecordType, id))
	return t, records.OrMissing(err, apierr.RecordTypeNotFound)
}

// externalTypeProof covers the record types of other applications. The program defines the others.
var externalTypeProof = records.Proof{
	Type: "record_types", From: "(SELECT id FROM record_types WHERE permissions <> '') AS external_types", Key: "id",
	Read: readExternalType, Migration: 70,
}

func readExternalType(ctx context.Context, q store.Querier, id string) (store.Record, error) {
	stored := struct {
		CreatedAt store.Time `json:"created_at"`
		CreatedBy string     `json:"created_by"`
	}{}
	if err := q.QueryRow(ctx, selectTypeOrigin, id).Scan(&stored.CreatedAt, &stored.CreatedBy); err != nil {
		return store.Record{}, err
	}
	t, err := scanType(q.QueryRow(ctx, selectRecordType, id))
	return store.Record{Answer: t, Stored: stored}, err
}

// externalPermissions returns the permissions of a record type of another application; nil for an unknown type.
func externalPermissions(ctx context.Context, q store.Querier, recType string) ([]string, error) {
	var permissions string
	err := q.QueryRow(ctx, selectPermissionsOf, recType).Scan(&permissions)
	switch {
	case errors.Is(err, store.ErrNotFound):
		return nil, nil
	case err != nil:
		return nil, err
	}
	return strings.Split(permissions, ","), nil
}

// holdsExternal reports whether a grant gives a user, or a role of theirs, a permission on another application's record.
func holdsExternal(ctx context.Context, q store.Querier, userID, recType, recID, permission string) (bool, error) {
	return store.Exists(ctx, q, selectExternalHeld, userID, recType, recID, permission)
}

// externalGrantsOn reads which principals of a caller hold a permission on records, or on the type as a whole (an empty id). It is one
// search of the index for each record and principal, however many grants either has.
func externalGrantsOn(ctx context.Context, q store.Querier, caller *access.Caller, recType, permission string, ids []string) (map[string]grantHolders, error) {
	found := map[string]grantHolders{}
	args := store.AppendIn([]any{recType, permission}, ids)
	principals := principalsOf(caller)
	statement := `SELECT rec_id, principal_id FROM external_grants WHERE rec_type = $1 AND permission = $2 AND rec_id IN (` + store.In(3, len(ids)) +
		`) AND principal_id IN (` + store.In(len(args)+1, len(principals)) + `)`
	err := store.Each(ctx, q, func(rows store.Scanner) error {
		var id, principal string
		if err := rows.Scan(&id, &principal); err != nil {
			return err
		}
		found[id] = found[id].with(caller, principal)
		return nil
	}, statement, store.AppendIn(args, principals)...)
	return found, err
}

// lackingExternal returns a right on another application's records that a holder has and a caller does not have, or an empty text.
func lackingExternal(ctx context.Context, q store.Querier, caller, holder *access.Caller) (string, error) {
	has := principalsOf(holder)
	if len(has) == 0 {
		return "", nil
	}
	asks := principalsOf(caller)
	args := store.AppendIn(nil, has)
	asking := store.In(len(args)+1, len(asks))
	rows, err := store.All(ctx, q, store.Text, `
		SELECT h.rec_type || ':' || h.permission || ' ' || h.rec_id FROM external_grants h
		WHERE h.principal_id IN (`+store.In(1, len(has))+`) AND NOT EXISTS (
			SELECT 1 FROM external_grants c
			WHERE c.rec_type = h.rec_type AND c.rec_id IN (h.rec_id, '') AND c.permission = h.permission
				AND c.principal_id IN (`+asking+`))
		ORDER BY h.rec_type, h.rec_id LIMIT 1`, store.AppendIn(args, asks)...)
	if err != nil || len(rows) == 0 {
		return "", err
	}
	return strings.TrimSpace(rows[0]), nil
}

// principalsOf returns the ids of a user and of their roles.
func principalsOf(c *access.Caller) []string {
	principals := slices.Clone(c.Roles)
	if c.UserID != "" {
		principals = append(principals, c.UserID)
	}
	return principals
}
