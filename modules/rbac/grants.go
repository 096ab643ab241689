package rbac

import (
	"context"
	"fmt"
	"net/http"

	"kontor/modules/kit/list"
	"kontor/modules/kit/types"
	"kontor/server/access"
	"kontor/server/apierr"
	"kontor/server/endpoint"
	"kontor/store"
)

// Grant gives a role or a user permissions on a record type, permissions on one record, or an endpoint. It is made and
// removed, never changed.
type Grant struct {
	ID          string     `json:"id"`
	RoleID      *string    `json:"role_id"`
	UserID      *string    `json:"user_id"`
	RecType     *string    `json:"rec_type"`
	RecID       *string    `json:"rec_id" doc:"null: the type as a whole."`
	Permissions []string   `json:"permissions" enum:"create,read,update,delete,read_all" doc:"Empty for a grant on an endpoint."`
	Endpoint    *string    `json:"endpoint"`
	CreatedAt   store.Time `json:"created_at"`
	CreatedBy   string     `json:"created_by"`
}

// principal is who gets the grant, and as what.
func (g Grant) principal() (kind, id string) {
	if g.RoleID != nil {
		return "role", *g.RoleID
	}
	return "user", *g.UserID
}

// recID is the record, or nothing for the type as a whole.
func (g Grant) recID() string {
	if g.RecID == nil {
		return ""
	}
	return *g.RecID
}

// GrantInput names exactly one of role and user, and either a record type with permissions, perhaps on one record, or
// an endpoint.
type GrantInput struct {
	RoleID      string   `json:"role_id" required:"false" doc:"Either role_id or user_id."`
	UserID      string   `json:"user_id" required:"false" doc:"Either role_id or user_id."`
	RecType     string   `json:"rec_type" required:"false" doc:"Either rec_type with permissions, or endpoint."`
	Permissions []string `json:"permissions" enum:"create,read,update,delete,read_all"`
	RecID       string   `json:"rec_id" doc:"One record; without it the type as a whole."`
	Endpoint    string   `json:"endpoint" doc:"As GET /v1/rbac/endpoints lists it."`
}

// Validate checks that the members fit together and brings ids into their stored form.
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
		v.Add("rec_type", "invalid.unknown_record_type")
	}
	canonicalID(v, "rec_id", &in.RecID)
	if in.RecID == store.NilID {
		in.RecID = ""
	}
	in.validatePermissions(v)
}

// onRecord are the permissions that a single record can be granted for: nobody creates a record that exists, and
// reading all says nothing about one.
const onRecord = access.Read | access.Update | access.Delete

func (in *GrantInput) validatePermissions(v *apierr.Fields) {
	if len(in.Permissions) == 0 {
		v.Add("permissions", "invalid.required")
		return
	}
	possible := access.All
	if in.RecID != "" {
		possible = onRecord
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

// canonicalID brings an id into its stored form.
func canonicalID(v *apierr.Fields, field string, id *string) {
	if *id == "" {
		return
	}
	parsed, err := types.ParseID(*id)
	if err != nil {
		v.Add(field, "invalid.uuid")
		return
	}
	*id = parsed
}

func (in GrantInput) grant() Grant {
	return Grant{
		ID: store.NewID(), RoleID: optional(in.RoleID), UserID: optional(in.UserID), RecType: optional(in.RecType),
		RecID: optional(in.RecID), Permissions: in.Permissions, Endpoint: optional(in.Endpoint),
	}
}

func optional(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}

// CreateGrant makes a grant, in force for the next request. Nobody grants what he does not hold, and nobody grants
// anything to himself or to a role of his own. It returns apierr.RoleNotFound, apierr.UserNotFound,
// apierr.EndpointNotFound, apierr.InvalidInput for a record that does not exist, apierr.GrantToSelf, apierr.GrantNotHeld,
// and apierr.GrantExists when a part of it was granted before.
func (s *Service) CreateGrant(ctx context.Context, in GrantInput) (Grant, error) {
	caller := access.From(ctx)
	if err := s.checkObjects(ctx, in); err != nil {
		return Grant{}, err
	}
	own, err := s.ownRight(ctx, caller.UserID, in)
	if err != nil {
		return Grant{}, err
	}
	grant := in.grant()
	grant.CreatedBy, grant.CreatedAt = caller.UserID, s.db.Now()
	after, answer := grantTable.Digest(s.db, grant), s.db.Answer(ctx, grant)
	err = s.db.InTx(ctx, func(tx *store.Tx) error {
		if in.RoleID != "" {
			if _, err := roleTable.GetUnchecked(ctx, tx, in.RoleID); err != nil {
				return err
			}
		}
		if err := mayGrant(ctx, tx, caller.UserID, own, in); err != nil {
			return err
		}
		if err := insertGrant(ctx, tx, grant); err != nil {
			return err
		}
		grantTable.Audit(ctx, tx, "rbac.grants.create", grant.ID, nil, after)
		tx.Respond(http.StatusCreated, answer)
		s.afterGrant(tx, grant)
		return nil
	})
	return grant, err
}

// afterGrant puts a change in force. A grant on one record needs nothing: it is read with the record.
func (s *Service) afterGrant(tx *store.Tx, grant Grant) {
	if grant.RecID == nil {
		tx.AfterCommit(s.policy.changed)
	}
}

// checkObjects looks for the user, the endpoint and the record of a grant; the role is looked for in the transaction.
func (s *Service) checkObjects(ctx context.Context, in GrantInput) error {
	if in.UserID != "" {
		known, err := s.exists(ctx, access.Users, in.UserID)
		if err != nil {
			return err
		}
		if !known {
			return apierr.UserNotFound
		}
	}
	if in.Endpoint != "" && !s.serves(in.Endpoint) {
		return apierr.EndpointNotFound
	}
	if in.RecID == "" {
		return nil
	}
	t, _ := access.LookupType(in.RecType)
	known, err := s.exists(ctx, t, in.RecID)
	if err == nil && !known {
		err = apierr.Invalid("rec_id", "invalid.unknown_record")
	}
	return err
}

func (s *Service) exists(ctx context.Context, t access.RecordType, id string) (bool, error) {
	records := s.records(t)
	if records == nil {
		return false, nil
	}
	found, err := records.Standings(ctx, access.From(ctx).UserID, []string{id})
	if err != nil {
		return false, fmt.Errorf("look for %s %s: %w", t, id, err)
	}
	_, known := found[id]
	return known, nil
}

// Grants lists the grants that the caller may read.
func (s *Service) Grants(ctx context.Context, p list.Params) (list.Page[Grant], error) {
	return grantList.Page(ctx, s.db, p, grantTable.Visible(access.From(ctx)))
}

// DeleteGrant removes a grant; the right is gone with the next request. It returns apierr.GrantNotFound, apierr.NoAccess
// and apierr.PreconditionFailed.
func (s *Service) DeleteGrant(ctx context.Context, id string) error {
	return s.db.InTx(ctx, func(tx *store.Tx) error {
		grant, err := grantTable.Get(ctx, tx, id, access.Delete)
		if err != nil {
			return err
		}
		if err := endpoint.CheckMatch(ctx, grantETag); err != nil {
			return err
		}
		if err := deleteGrant(ctx, tx, grant); err != nil {
			return err
		}
		grantTable.Audit(ctx, tx, "rbac.grants.delete", id, grant, nil)
		s.afterGrant(tx, grant)
		return nil
	})
}

// grantETag is the state of every grant: it never changes.
const grantETag = "1"

// ETag says that a grant never changes.
func (g Grant) ETag() string { return grantETag }
