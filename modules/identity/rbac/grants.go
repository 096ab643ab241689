package rbac

import (
	"context"
	"fmt"
	"slices"

	"kontor/modules/kit/list"
	"kontor/modules/kit/types"
	"kontor/modules/kit/validate"
	"kontor/server/access"
	"kontor/server/apierr"
	"kontor/server/endpoint"
	"kontor/store"
)

// Grant gives a role or a user permissions on a record type, permissions on one record, or an endpoint. Grants are created and
// deleted but never changed.
type Grant struct {
	ID          string     `json:"id"`
	RoleID      *string    `json:"role_id"`
	UserID      *string    `json:"user_id"`
	RecType     *string    `json:"rec_type"`
	RecID       *string    `json:"rec_id" format:"-" doc:"null for the type as a whole."`
	Permissions []string   `json:"permissions" example:"read" doc:"create, read, update, delete or read_all, or those of another application's record type. Empty for a grant on an endpoint."`
	Endpoint    *string    `json:"endpoint"`
	CreatedAt   store.Time `json:"created_at"`
	CreatedBy   string     `json:"created_by"`
	// The digests of grants without a term are those of earlier versions, which had no such members.
	StartsAt  *store.Time `json:"starts_at,omitzero" form:"later" doc:"When the grant begins; missing from grants that are in force since they were created."`
	ExpiresAt *store.Time `json:"expires_at,omitzero" form:"later" doc:"When the grant ends by itself; missing from grants that do not."`

	later bool // starts_at is not reached
}

// EachUser names the creator and the user whom the grant is for.
func (g Grant) EachUser(add func(id string)) {
	add(g.CreatedBy)
	if g.UserID != nil {
		add(*g.UserID)
	}
}

// principal returns kind and id of the grant's principal.
func (g Grant) principal() (kind, id string) {
	if g.RoleID != nil {
		return "role", *g.RoleID
	}
	return "user", *g.UserID
}

// recID returns the id of the record, or an empty text for the type as a whole.
func (g Grant) recID() string {
	if g.RecID == nil {
		return ""
	}
	return *g.RecID
}

// findGranted finds what a new grant names.
func (s *Service) findGranted(ctx context.Context, _ []string, in any) error {
	grant := in.(*GrantInput)
	if err := s.checkReferences(ctx, *grant); err != nil || grant.RoleID == "" {
		return err
	}
	_, err := roleTable.GetUnchecked(ctx, s.db, grant.RoleID)
	return err
}

// CreateGrant creates a grant, in force for the next request. Callers can only grant what they hold themselves, and neither to
// themselves nor to a role of theirs. It returns apierr.RoleNotFound, apierr.UserNotFound, apierr.EndpointNotFound,
// apierr.InvalidInput for an unknown record, apierr.GrantToSelf, apierr.GrantNotHeld, and apierr.GrantExists when the principal
// already has one of the permissions by a grant.
func (s *Service) CreateGrant(ctx context.Context, in GrantInput) (Grant, error) {
	caller := access.From(ctx)
	if err := s.checkReferences(ctx, in); err != nil {
		return Grant{}, err
	}
	own, err := s.ownPermissions(ctx, caller.UserID, in)
	if err != nil {
		return Grant{}, err
	}
	unknown := s.checkRecord(ctx, in)
	grant := in.grant()
	grant.CreatedBy, grant.CreatedAt = caller.UserID, s.db.Now()
	if grant.later, err = checkTerm(in.StartsAt, in.ExpiresAt, grant.CreatedAt); err != nil {
		return Grant{}, err
	}
	after, answer := grantTable.Answer(ctx, s.db, grant)
	err = s.db.InTx(ctx, func(tx *store.Tx) error {
		if in.RoleID != "" {
			if _, err := roleTable.GetUnchecked(ctx, tx, in.RoleID); err != nil {
				return err
			}
		}
		if in.external {
			if err := checkExternal(ctx, tx, in); err != nil {
				return err
			}
		}
		if err := s.checkDelegation(ctx, tx, caller.UserID, own, in); err != nil {
			return err
		}
		if unknown != nil {
			return unknown
		}
		if err := insertGrant(ctx, tx, grant); err != nil {
			return err
		}
		grantTable.Audit(ctx, tx, "rbac.grants.create", grant.ID, nil, after)
		tx.Respond(answer)
		s.applyGrant(tx, grant)
		if grant.StartsAt != nil || grant.ExpiresAt != nil {
			s.TermsChanged(tx)
		}
		return nil
	})
	return grant, err
}

// applyGrant reloads the policy after the commit of a changed grant. Grants on single records are not part of the policy.
func (s *Service) applyGrant(tx *store.Tx, grant Grant) {
	if grant.RecID == nil {
		tx.Announce(s.changed, "")
	}
}

// checkReferences checks that user and endpoint of a grant exist. The transaction checks the role, [Service.checkRecord] the record.
func (s *Service) checkReferences(ctx context.Context, in GrantInput) error {
	if in.UserID != "" {
		if err := s.requireUser(ctx, in.UserID); err != nil {
			return err
		}
	}
	if in.Endpoint != "" && !s.serves(in.Endpoint) {
		return apierr.EndpointNotFound
	}
	return nil
}

// checkRecord checks that the record of a grant exists. Callers learn it only about types of which they hold the permissions.
func (s *Service) checkRecord(ctx context.Context, in GrantInput) error {
	if in.RecID == "" || in.external {
		return nil
	}
	t, _ := access.LookupType(in.RecType)
	known, err := s.exists(ctx, t, in.RecID)
	if err == nil && !known {
		err = apierr.Invalid("rec_id", "invalid.unknown_record")
	}
	return err
}

// requireUser returns apierr.UserNotFound for an unknown user.
func (s *Service) requireUser(ctx context.Context, id string) error {
	known, err := s.exists(ctx, access.Users, id)
	if err == nil && !known {
		err = apierr.UserNotFound
	}
	return err
}

// exists reports whether a record exists. It returns false for types without a module.
func (s *Service) exists(ctx context.Context, t access.RecordType, id string) (bool, error) {
	records := s.recordsOf(t)
	if records == nil {
		return false, nil
	}
	found, err := records.Relations(ctx, access.From(ctx).UserID, []string{id})
	if err != nil {
		return false, fmt.Errorf("look up %s %s: %w", t, id, err)
	}
	_, known := found[id]
	return known, nil
}

// listGrants returns the grants that the caller may read.
func (s *Service) listGrants(ctx context.Context, in list.Input) (list.Page[Grant], error) {
	return grantList.Page(ctx, s.db, in.Query, grantTable.Visible(access.From(ctx)))
}

// deleteGrant deletes a grant, in force for the next request. It returns apierr.GrantNotFound, apierr.NoAccess and
// apierr.PreconditionFailed.
func (s *Service) deleteGrant(ctx context.Context, in endpoint.ByID) (endpoint.Message, error) {
	err := s.db.InTx(ctx, func(tx *store.Tx) error {
		grant, err := grantTable.Get(ctx, tx, in.ID, access.Delete)
		if err != nil {
			return err
		}
		if err := endpoint.CheckMatch(ctx, grantETag); err != nil {
			return err
		}
		if err := deleteGrant(ctx, tx, grant); err != nil {
			return err
		}
		grantTable.Audit(ctx, tx, "rbac.grants.delete", in.ID, grant, nil)
		s.applyGrant(tx, grant)
		return nil
	})
	return endpoint.Confirm(ctx, s.Texts, "rbac.grant_deleted"), err
}

// grantETag is the version of every grant, because grants never change.
const grantETag = "1"

// ETag returns the version of the grant.
func (g Grant) ETag() string { return grantETag }

// GrantInput contains exactly one of role and user. It contains either an endpoint, or a record type with permissions and,
// optionally, one record.
type GrantInput struct {
	RoleID      string   `json:"role_id" required:"false" doc:"Either role_id or user_id."`
	UserID      string   `json:"user_id" required:"false" example:"-" doc:"Either role_id or user_id."`
	RecType     string   `json:"rec_type" required:"false" doc:"Either rec_type with permissions, or endpoint."`
	Permissions []string `json:"permissions" maxItems:"50" example:"read" doc:"create, read, update, delete and read_all; on a record type of another application those that it declares."`
	RecID       string   `json:"rec_id" format:"-" maxLength:"200" example:"-" doc:"The id of one record; of another application's record any text. Without it the grant is on the type as a whole."`
	Endpoint    string   `json:"endpoint" example:"-" doc:"An endpoint as GET /v1/rbac/endpoints lists it."`

	StartsAt  *store.Time `json:"starts_at" example:"-" doc:"When the grant begins; without it, or in the past, at once."`
	ExpiresAt *store.Time `json:"expires_at" example:"2099-12-31T23:00:00.000Z" doc:"When the grant ends by itself; without it, it does not."`

	external bool // on a record type that is not of Kontor
}

// Validate checks that the members fit together, and normalizes ids.
func (in *GrantInput) Validate(v *apierr.Fields) {
	if (in.RoleID == "") == (in.UserID == "") {
		v.Add("role_id", "invalid.role_or_user")
	}
	canonicalID(v, "role_id", &in.RoleID)
	canonicalID(v, "user_id", &in.UserID)
	if (in.RecType == "") == (in.Endpoint == "") {
		v.Add("rec_type", "invalid.type_or_endpoint")
	}
	if in.Endpoint != "" {
		if len(in.Permissions) > 0 {
			v.Add("permissions", "invalid.not_with_endpoint")
		}
		if in.RecID != "" {
			v.Add("rec_id", "invalid.not_with_endpoint")
		}
		return
	}
	if in.RecType == "" {
		return
	}
	if _, known := access.LookupType(in.RecType); !known {
		in.validateExternal(v)
		return
	}
	canonicalID(v, "rec_id", &in.RecID)
	if in.RecID == store.NilID {
		in.RecID = ""
	}
	in.validatePermissions(v)
}

// recordPermissions are the permissions that can be granted on one record. Create and read_all have no meaning for a single
// record.
const recordPermissions = access.Read | access.Update | access.Delete

func (in *GrantInput) validatePermissions(v *apierr.Fields) {
	if len(in.Permissions) == 0 {
		v.Add("permissions", "invalid.required")
		return
	}
	possible := access.All
	if in.RecID != "" {
		possible = recordPermissions
	}
	var wanted access.Permission
	for _, name := range in.Permissions {
		permission, known := access.ParsePermission(name)
		if !known || permission&possible == 0 {
			v.Add("permissions", "invalid.one_of", apierr.Args{"Values": names(possible)})
			return
		}
		wanted |= permission
	}
	in.Permissions = wanted.Names()
}

// canonicalID replaces an id by its stored form. It reports an invalid id under the field.
func canonicalID(v *apierr.Fields, field string, id *string) {
	*id = validate.Parsed(v, field, *id, types.ParseID)
}

func (in GrantInput) grant() Grant {
	return Grant{
		ID: store.NewID(), RoleID: types.NilIfEmpty(in.RoleID), UserID: types.NilIfEmpty(in.UserID), RecType: types.NilIfEmpty(in.RecType),
		RecID: types.NilIfEmpty(in.RecID), Permissions: in.Permissions, Endpoint: types.NilIfEmpty(in.Endpoint),
		StartsAt: in.StartsAt, ExpiresAt: in.ExpiresAt,
	}
}

// laterGrant is a grant on an endpoint that a built-in role did not have in earlier versions. A database gets it once, unless
// administrators have changed the role's grants: then they decide.
type laterGrant struct {
	name     string // of its audit entry, which says that it was decided
	role     string // id
	endpoint string
}

var laterGrants = []laterGrant{
	{name: "grant-customers-read-bills", role: access.Customer, endpoint: "POST /v1/invoices/qrcode"},
	{name: "grant-registrants-read-themselves", role: access.Registrant, endpoint: "GET /v1/users/me"},
}

const (
	selectGrantedEndpoints = `SELECT endpoint FROM endpoint_grants WHERE principal_id = $1`
	countOtherGrants       = `SELECT COUNT(*) FROM grant_records WHERE role_id = $1 AND created_by <> $2`
)

// undecided returns the later grants about which nothing was decided in this database.
func (s *Service) undecided(ctx context.Context) ([]laterGrant, error) {
	var open []laterGrant
	for _, g := range laterGrants {
		if !s.serves(g.endpoint) {
			continue
		}
		seq, err := store.LastAuditEntry(ctx, s.db, access.Audit.Name, g.name)
		if err != nil {
			return nil, fmt.Errorf("read whether %s was decided: %w", g.name, err)
		}
		if seq == 0 {
			open = append(open, g)
		}
	}
	return open, nil
}

// decide gives the role the endpoint, unless administrators have changed its grants, and records that this was decided. The initial
// grants must be complete.
func decide(ctx context.Context, tx *store.Tx, g laterGrant, table []endpoint.Endpoint) error {
	changed, err := changedByAdministrators(ctx, tx, g, table)
	if err != nil {
		return err
	}
	if !changed {
		if err := seedGrant(ctx, tx, endpointGrant(g.role, g.endpoint)); err != nil {
			return err
		}
	}
	tx.Audit(store.AuditEntry{Actor: store.NilID, Action: "rbac.seed", RecType: access.Audit.Name, RecID: g.name})
	return nil
}

// changedByAdministrators reports whether the role has grants that it did not get at a start, or lacks an initial one.
func changedByAdministrators(ctx context.Context, tx *store.Tx, g laterGrant, table []endpoint.Endpoint) (bool, error) {
	var added int
	if err := tx.QueryRow(ctx, countOtherGrants, g.role, store.NilID).Scan(&added); err != nil {
		return false, err
	}
	granted, err := store.All(ctx, tx, store.Text, selectGrantedEndpoints, g.role)
	if err != nil || added > 0 {
		return added > 0, err
	}
	return slices.ContainsFunc(table, func(e endpoint.Endpoint) bool {
		return slices.Contains(e.Roles, g.role) && e.Key() != g.endpoint && !slices.Contains(granted, e.Key())
	}), nil
}
