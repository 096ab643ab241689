package rbac

import (
	"context"
	"fmt"

	"kontor/modules/kit/list"
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

// Grants returns the grants that the caller may read.
func (s *Service) Grants(ctx context.Context, p list.Params) (list.Page[Grant], error) {
	return grantList.Page(ctx, s.db, p, grantTable.Visible(access.From(ctx)))
}

// DeleteGrant deletes a grant, in force for the next request. It returns apierr.GrantNotFound, apierr.NoAccess and
// apierr.PreconditionFailed.
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
		s.applyGrant(tx, grant)
		return nil
	})
}

// grantETag is the version of every grant, because grants never change.
const grantETag = "1"

// ETag returns the version of the grant.
func (g Grant) ETag() string { return grantETag }
