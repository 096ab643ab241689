package rbac

import (
	"context"
	"net/http"
	"strings"

	"kontor/modules/kit/list"
	"kontor/modules/kit/records"
	"kontor/modules/kit/types"
	"kontor/modules/kit/validate"
	"kontor/server/access"
	"kontor/server/apierr"
	"kontor/server/endpoint"
	"kontor/store"
)

// HeldRight is a role that a user holds, or a grant that a user or a role has.
type HeldRight struct {
	ID          string      `json:"id" format:"-" example:"0193b000-0000-7000-8000-0000000000aa" doc:"The id of the grant; for a role, the ids of user and role with a colon between them."`
	Kind        string      `json:"kind" enum:"role,type,record,endpoint" doc:"A role of a user, or a grant on a record type, a record or an endpoint."`
	UserID      *string     `json:"user_id" format:"uuid" doc:"null for a grant of a role."`
	RoleID      *string     `json:"role_id" format:"uuid" doc:"The role that the user holds; without a user, the role that has the grant."`
	RoleName    string      `json:"role_name" example:"Advisor" doc:"Empty without a role."`
	GrantID     *string     `json:"grant_id" format:"uuid" doc:"null for a role of a user."`
	RecType     *string     `json:"rec_type"`
	RecID       *string     `json:"rec_id" format:"-"`
	Permissions []string    `json:"permissions" example:"read"`
	Endpoint    *string     `json:"endpoint"`
	CreatedAt   store.Time  `json:"created_at"`
	CreatedBy   string      `json:"created_by"`
	StartsAt    *store.Time `json:"starts_at"`
	ExpiresAt   *store.Time `json:"expires_at"`
	InForce     bool        `json:"in_force" doc:"false while starts_at is not reached."`
	LastUsedAt  *store.Time `json:"last_used_at" doc:"The beginning of the hour in which a request last used the right; null: none has."`
	ReviewedAt  *store.Time `json:"reviewed_at" doc:"When the user, or the role that has the grant, was last reviewed."`

	named bool // the caller may read the names of all users
}

// EachUser names the holder and the creator to callers who may list users.
func (r HeldRight) EachUser(add func(id string)) {
	if !r.named {
		return
	}
	add(r.CreatedBy)
	if r.UserID != nil {
		add(*r.UserID)
	}
}

// Review is the decision about all rights of a user or a role.
type Review struct {
	ID        string     `json:"id"`
	UserID    *string    `json:"user_id" format:"uuid"`
	RoleID    *string    `json:"role_id" format:"uuid"`
	RoleName  string     `json:"role_name" example:"Auditor" doc:"The name at that time; empty for a user."`
	Decision  string     `json:"decision" enum:"keep,remove"`
	Rights    int64      `json:"rights" doc:"How many roles and grants the user held, or how many grants the role had."`
	Remaining int64      `json:"remaining" doc:"How many of them are left. A removal deletes at most 1000 grants: repeat it for the others."`
	CreatedAt store.Time `json:"created_at"`
	CreatedBy string     `json:"created_by"`

	named bool
}

// EachUser names the user and the reviewer to callers who may list users.
func (r Review) EachUser(add func(id string)) {
	if !r.named {
		return
	}
	add(r.CreatedBy)
	if r.UserID != nil {
		add(*r.UserID)
	}
}

const heldColumns = "id, kind, user_id, role_id, role_name, grant_id, rec_type, rec_id, permissions, endpoint, created_at, created_by, " +
	"starts_at, expires_at, in_force, last_used_at, reviewed_at"

var heldList = list.New(list.Source[HeldRight]{
	From: "reviewed_rights", Columns: heldColumns, ID: "id", Created: "created_at",
	Tables: []string{"user_roles", "grant_records", "roles", "right_uses", "access_reviews"}, Scan: scanHeld,
	Fields: list.Fields{
		{Name: "id", Type: list.Text, Column: "id", Key: "id"},
		{Name: "kind", Type: list.Text, Column: "kind", Key: "kind"},
		{Name: "user_id", Type: list.UUID, Column: "user_id", Null: true},
		{Name: "role_id", Type: list.UUID, Column: "role_id", Null: true},
		{Name: "role_name", Type: list.Text, Column: "role_name", Key: "role_name_key"},
		{Name: "grant_id", Type: list.UUID, Column: "grant_id", Null: true},
		{Name: "rec_type", Type: list.Text, Column: "rec_type", Key: "rec_type", Null: true},
		{Name: "rec_id", Type: list.Text, Column: "rec_id", Null: true},
		{Name: "endpoint", Type: list.Text, Column: "endpoint", Null: true},
		{Name: "created_at", Type: list.Time, Column: "created_at"},
		{Name: "created_by", Type: list.UUID, Column: "created_by"},
		{Name: "starts_at", Type: list.Time, Column: "starts_at", Null: true},
		{Name: "expires_at", Type: list.Time, Column: "expires_at", Null: true},
		{Name: "in_force", Type: list.Bool, Column: "in_force"},
		{Name: "last_used_at", Type: list.Time, Column: "last_used_at", Null: true},
		{Name: "reviewed_at", Type: list.Time, Column: "reviewed_at", Null: true},
	},
})

func scanHeld(row list.Row) (HeldRight, error) {
	var r HeldRight
	var permissions string
	err := row.Scan(&r.ID, &r.Kind, &r.UserID, &r.RoleID, &r.RoleName, &r.GrantID, &r.RecType, &r.RecID, &permissions, &r.Endpoint,
		&r.CreatedAt, &r.CreatedBy, &r.StartsAt, &r.ExpiresAt, &r.InForce, &r.LastUsedAt, &r.ReviewedAt)
	r.Permissions = []string{}
	if permissions != "" {
		r.Permissions = strings.Split(permissions, ",")
	}
	return r, err
}

const reviewColumns = "id, user_id, role_id, role_name, decision, rights, remaining, created_at, created_by"

var reviewList = list.New(list.Source[Review]{
	From: "access_reviews", Columns: reviewColumns, ID: "id", Created: "created_at", Tables: []string{"access_reviews"}, Scan: scanReview,
	Fields: list.Fields{
		{Name: "id", Type: list.UUID, Column: "id"},
		{Name: "user_id", Type: list.UUID, Column: "user_id", Null: true},
		{Name: "role_id", Type: list.UUID, Column: "role_id", Null: true},
		{Name: "role_name", Type: list.Text, Column: "role_name"},
		{Name: "decision", Type: list.Text, Column: "decision", Key: "decision"},
		{Name: "created_at", Type: list.Time, Column: "created_at"},
		{Name: "created_by", Type: list.UUID, Column: "created_by"},
	},
})

func scanReview(row list.Row) (Review, error) {
	var r Review
	err := row.Scan(&r.ID, &r.UserID, &r.RoleID, &r.RoleName, &r.Decision, &r.Rights, &r.Remaining, &r.CreatedAt, &r.CreatedBy)
	return r, err
}

const (
	selectReview = `SELECT ` + reviewColumns + ` FROM access_reviews WHERE id = $1`
	insertReview = `
		INSERT INTO access_reviews (id, user_id, role_id, role_name, decision, rights, remaining, created_at, created_by)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)`

	countHeld      = `SELECT COUNT(*) FROM reviewed_rights WHERE user_id = $1`
	countRoleGrant = `SELECT COUNT(*) FROM grant_records WHERE role_id = $1`

	selectGrantsOfUser = `SELECT ` + grantColumns + ` FROM grant_records WHERE user_id = $1 ORDER BY created_at, id LIMIT $2`
	maxRemoved         = 1000
)

// reviewProof proves who reviewed which rights.
var reviewProof = records.Proof{Type: "access_reviews", From: "access_reviews", Key: "id", Read: readReview}

func readReview(ctx context.Context, q store.Querier, id string) (store.Record, error) {
	r, err := scanReview(q.QueryRow(ctx, selectReview, id))
	return store.Record{Answer: r}, err
}

// The decisions of a review.
const (
	keepRights   = "keep"
	removeRights = "remove"
)

// reviewActions are the actions of audit entries by decision.
var reviewActions = map[string]string{keepRights: "rbac.reviews.keep", removeRights: "rbac.reviews.remove"}

type reviewInput struct {
	UserID   string `json:"user_id" required:"false" doc:"Either user_id or role_id."`
	RoleID   string `json:"role_id" required:"false" example:"-" doc:"Either user_id or role_id."`
	Decision string `json:"decision" enum:"keep,remove" doc:"remove takes all roles and grants from a user, or deletes a role with its grants."`
}

// Validate normalizes the ids and requires one of them.
func (in *reviewInput) Validate(v *apierr.Fields) {
	if (in.UserID == "") == (in.RoleID == "") {
		v.Add("role_id", "invalid.role_or_user")
	}
	canonicalID(v, "user_id", &in.UserID)
	canonicalID(v, "role_id", &in.RoleID)
	validate.OneOf(v, "decision", in.Decision, keepRights, removeRights)
}

// heldRights returns who holds what. It returns apierr.NoAccess to callers who may not read all grants.
func (s *Service) heldRights(ctx context.Context, in list.Input) (list.Page[HeldRight], error) {
	caller := access.From(ctx)
	if !caller.May(access.Grants, access.ReadAll) {
		return list.Page[HeldRight]{}, apierr.NoAccess
	}
	if err := s.FlushUses(ctx); err != nil { // rights can be reviewed while the disk accepts no writes
		s.Log.Warn("last use of rights not written", "cause", err)
	}
	page, err := heldList.Page(ctx, s.db, in.Query)
	for i := range page.Data.Rows {
		page.Data.Rows[i].named = caller.May(access.Users, access.ReadAll)
	}
	return page, err
}

// reviews returns who reviewed when. It returns apierr.NoAccess to callers who may not read all grants.
func (s *Service) reviews(ctx context.Context, in list.Input) (list.Page[Review], error) {
	caller := access.From(ctx)
	if !caller.May(access.Grants, access.ReadAll) {
		return list.Page[Review]{}, apierr.NoAccess
	}
	page, err := reviewList.Page(ctx, s.db, in.Query)
	for i := range page.Data.Rows {
		page.Data.Rows[i].named = caller.May(access.Users, access.ReadAll)
	}
	return page, err
}

// findReviewed finds the user or role of a review.
func (s *Service) findReviewed(ctx context.Context, _ []string, in any) error {
	of := in.(*reviewInput)
	if !access.From(ctx).May(access.Grants, access.ReadAll) {
		return apierr.NoAccess
	}
	if of.UserID != "" {
		return s.requireUser(ctx, of.UserID)
	}
	_, err := roleTable.GetUnchecked(ctx, s.db, of.RoleID)
	return err
}

// review stores the decision about a user or a role, and removes their rights. Users cannot review themselves. A removal follows the rules
// of the single operations: the caller holds every right of the user or role, may change it, and an administrator remains. It
// returns apierr.NoAccess, apierr.GrantToSelf, apierr.UserNotFound, apierr.RoleNotFound, apierr.RightsNotHeld, and the errors of
// [Service.DeleteRole] and of the roles of users.
func (s *Service) review(ctx context.Context, in reviewInput) (Review, error) {
	caller := access.From(ctx)
	switch {
	case !caller.May(access.Grants, access.ReadAll):
		return Review{}, apierr.NoAccess
	case in.UserID == caller.UserID:
		return Review{}, apierr.GrantToSelf
	}
	if in.UserID != "" {
		if err := s.requireUser(ctx, in.UserID); err != nil {
			return Review{}, err
		}
	}
	r := Review{ID: store.NewID(), UserID: types.NilIfEmpty(in.UserID), RoleID: types.NilIfEmpty(in.RoleID), Decision: in.Decision,
		CreatedBy: caller.UserID, named: caller.May(access.Users, access.ReadAll)}
	err := s.db.InTx(ctx, func(tx *store.Tx) (err error) {
		r.CreatedAt = tx.Now()
		if in.RoleID != "" {
			err = s.reviewRole(ctx, tx, &r)
		} else {
			err = s.reviewUser(ctx, tx, &r)
		}
		if err != nil {
			return err
		}
		_, err = tx.Exec(ctx, insertReview, r.ID, r.UserID, r.RoleID, r.RoleName, r.Decision, r.Rights, r.Remaining, r.CreatedAt, r.CreatedBy)
		if err != nil {
			return err
		}
		tx.Respond(r)
		return reviewProof.Audit(ctx, tx, reviewActions[r.Decision], r.ID, nil)
	})
	return r, err
}

// reviewRole counts the grants of a role, and deletes the role if the decision is to remove it.
func (s *Service) reviewRole(ctx context.Context, tx *store.Tx, r *Review) error {
	role, err := roleTable.GetUnchecked(ctx, tx, *r.RoleID)
	if err != nil {
		return err
	}
	r.RoleName = role.Name
	if err := tx.QueryRow(ctx, countRoleGrant, role.ID).Scan(&r.Rights); err != nil {
		return err
	}
	if r.Decision == keepRights {
		r.Remaining = r.Rights
		return nil
	}
	if err := s.checkHolds(ctx, tx, &access.Caller{Roles: []string{role.ID}}); err != nil {
		return err
	}
	return s.removeRole(ctx, tx, role.ID)
}

// reviewUser counts the roles and grants of a user, and takes them if the decision is to remove them.
func (s *Service) reviewUser(ctx context.Context, tx *store.Tx, r *Review) error {
	if err := tx.QueryRow(ctx, countHeld, *r.UserID).Scan(&r.Rights); err != nil {
		return err
	}
	if r.Decision == keepRights {
		r.Remaining = r.Rights
		return nil
	}
	roles, err := s.Users.AssignedRoles(ctx, tx, *r.UserID)
	if err != nil {
		return err
	}
	if err := s.checkHolds(ctx, tx, &access.Caller{UserID: *r.UserID, Roles: roles}); err != nil {
		return err
	}
	if err := s.Users.RemoveRoles(ctx, tx, *r.UserID); err != nil {
		return err
	}
	grants, err := store.All(ctx, tx, scanGrant, selectGrantsOfUser, *r.UserID, maxRemoved)
	if err != nil {
		return err
	}
	for _, g := range grants {
		if _, err := grantTable.Get(ctx, tx, g.ID, access.Delete); err != nil {
			return err
		}
		if err := deleteGrant(ctx, tx, g); err != nil {
			return err
		}
		grantTable.Audit(ctx, tx, "rbac.grants.delete", g.ID, g, nil)
		s.applyGrant(tx, g)
	}
	return tx.QueryRow(ctx, countHeld, *r.UserID).Scan(&r.Remaining)
}

// checkHolds returns apierr.RightsNotHeld unless the caller holds every right of the holder.
func (s *Service) checkHolds(ctx context.Context, q store.Querier, holder *access.Caller) error {
	caller := access.From(ctx)
	if caller.Administrator() {
		return nil
	}
	lacking, err := s.lacking(ctx, q, caller, holder.WithPolicy(s.Policy.Load()))
	if err == nil && len(lacking) > 0 {
		err = apierr.RightsNotHeld
	}
	return err
}

// reviewEndpoints returns the rows of access reviews.
func (s *Service) reviewEndpoints() []endpoint.Endpoint {
	return []endpoint.Endpoint{
		{Name: "rbac.review.list", Method: http.MethodGet, Path: "/v1/rbac/review", Access: access.On(access.Grants, access.ReadAll),
			Summary: "List who holds which roles and grants.",
			Doc: endpoint.Doc{Search: heldList.Search(),
				Description: "The roles of users, and the grants of users and roles. A user with a role has its grants, too: search for its `role_id`. " +
					"`last_used_at` is known by the hour. Grants on record types of other applications have none."},
			Handle: endpoint.JSON(http.StatusOK, s.heldRights)},
		{Name: "rbac.reviews.list", Method: http.MethodGet, Path: "/v1/rbac/reviews", Access: access.On(access.Grants, access.ReadAll),
			Summary: "List access reviews.", Doc: endpoint.Doc{Search: reviewList.Search()},
			Handle: endpoint.JSON(http.StatusOK, s.reviews)},
		{Name: "rbac.reviews.create", Method: http.MethodPost, Path: "/v1/rbac/reviews", Access: access.On(access.Grants, access.ReadAll),
			Subject:   access.NoSubject("a removal is compared with what the caller holds"),
			Assurance: endpoint.SecondFactor, Find: s.findReviewed,
			Summary: "Record the review of a user or a role, and keep or remove all their rights.",
			Faults: []apierr.Kind{apierr.UserNotFound, apierr.RoleNotFound, apierr.RoleBuiltIn, apierr.RoleInSettings, apierr.GrantToSelf,
				apierr.GrantNotHeld, apierr.RightsNotHeld, apierr.LastAdministrator, apierr.RecordErased},
			Handle: endpoint.JSON(http.StatusCreated, s.review)},
	}
}
