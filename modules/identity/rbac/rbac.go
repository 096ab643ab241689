// Package rbac manages roles, grants and stored rate-limit rules, applies them, and answers permission checks.
//
// Grants on record types and endpoints and the rate-limit rules are few. They are kept in memory as one [access.Policy].
// Every commit that changes one of them reloads the whole policy, on every node, before the change is acknowledged. Grants on single records
// stay in their table; the statement that reads a record reads them, too.
//
// The module directory stores which user holds which role. The modules that own records answer for the relations of users to
// them, through [access.Records].
//
// Other applications may have record types of their own ([Service.Ask]): Kontor decides about records that it does not have.
//
// The module owns the tables roles, grants, endpoint_grants, grant_records, record_types, external_grants, endpoints,
// rate_limit_rules, rate_limit_counts, right_uses and access_reviews. It publishes three views:
//
//   - permissions (principal_id, rec_type, rec_id, permission): what a principal may do with a record, or with a type as a whole
//     when rec_id is empty;
//   - role_names (id, name, name_key): the names of roles, as written and folded;
//   - reviewed_rights: the roles of users and the grants of users and roles, with their last use and review.
package rbac

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"slices"

	"kontor/modules/kit/personal"
	"kontor/modules/kit/records"
	"kontor/modules/kit/types"
	"kontor/server/access"
	"kontor/server/apierr"
	"kontor/server/endpoint"
	"kontor/server/ratelimit"
	"kontor/store"
)

// users is implemented by the module directory, which stores the roles of users.
type users interface {
	// RolesOf returns the ids of the roles that a user holds, Everyone included: see [access.HeldRoles].
	RolesOf(ctx context.Context, q store.Querier, userID string) ([]string, error)
	// AssignedRoles returns the ids of the roles that a user holds now or later, in their order.
	AssignedRoles(ctx context.Context, q store.Querier, userID string) ([]string, error)
	// NextTerm returns when the next role of a user begins or ends; nil: none does.
	NextTerm(ctx context.Context, q store.Querier) (*store.Time, error)
	// ApplyTerms begins and ends roles that are due, at most limit of them, and returns their number.
	ApplyTerms(ctx context.Context, tx *store.Tx, limit int) (int, error)
	// RemoveRole takes a role from all users who hold it. Their sessions see the change on the next request.
	RemoveRole(ctx context.Context, tx *store.Tx, roleID string) error
	// RemoveRoles takes all roles from a user, by the rules of the operation that replaces them.
	RemoveRoles(ctx context.Context, tx *store.Tx, userID string) error
	// HolderOf returns the id of the user who has a credential, or an empty text.
	HolderOf(ctx context.Context, q store.Querier, credentialID string) (string, error)
	// InvitedRoles returns the ids of the roles that an invitation of another user than the caller gives.
	InvitedRoles(ctx context.Context, q store.Querier, invitationID string) ([]string, error)
}

// personas is the module that stores who a persona is.
type personas interface {
	// UsersOf returns the ids of the users who are, or were, a persona.
	UsersOf(ctx context.Context, q store.Querier, personaID string) ([]string, error)
}

// Options are the dependencies of a service.
type Options struct {
	// Policy receives each new policy; the server reads it.
	Policy *access.Current
	// Users stores the roles that users hold.
	Users users
	// Notifier notifies users that a grant ends.
	Notifier notifier
	// Personas stores who a persona is; nil: there are none.
	Personas personas
	// SettingRoles are the names or ids of the roles that settings name: see [Service.checkSettingRole].
	SettingRoles []string
	// Texts are the texts of the locale files.
	Texts endpoint.Texts
	// Records answer for the records of each type. The map may be filled until [Service.Start]. A type without an entry
	// has no records that a grant could name. This package itself answers for roles and grants.
	Records map[access.RecordType]access.Records
	// Log receives errors that occur after a commit; nil means slog's default logger.
	Log *slog.Logger
}

// Service manages roles, grants and rate-limit rules and answers permission checks.
type Service struct {
	personal.Nothing
	Options
	db           *store.DB
	policy       policyLoader
	changed      *store.Topic // the policy; the key does not matter
	terms        terms
	uses         uses
	termsChanged *store.Topic
	endpoints    map[string]Endpoint // by key, the endpoints that this process serves; set by Start
	readers      map[string][]reader // by record type, the endpoints that read a record; set by Start
}

// New returns a service. No policy is in force before [Service.Start].
func New(db *store.DB, o Options) *Service {
	o.Log = cmp.Or(o.Log, slog.Default())
	s := &Service{
		Options: o, db: db,
		policy: policyLoader{db: db, current: o.Policy, log: o.Log},
	}
	db.RegisterMoments(countMoment)
	s.changed = db.Topic("rbac.policy", func(string) { s.policy.reload() })
	s.terms.next.Store(never)
	s.termsChanged = db.Topic("rbac.terms", func(string) {
		if err := s.retime(context.Background()); err != nil && !errors.Is(err, store.ErrClosed) {
			s.Log.Error("cannot read when rights begin and end; it is tried again", "cause", err)
		}
	})
	return s
}

// Renew begins and ends the rights that are due, and reads the policy again if it has changed, for a node that does not hear changes.
func (s *Service) Renew(ctx context.Context) error {
	if !s.db.Remembers() {
		if err := s.retime(ctx); err != nil {
			return err
		}
	}
	if err := s.ApplyTerms(ctx); err != nil {
		return err
	}
	return s.policy.load(ctx)
}

// recordsOf returns the [access.Records] that answers for a type, or nil.
func (s *Service) recordsOf(t access.RecordType) access.Records {
	switch t {
	case access.Roles:
		return records.Of(s.db, roleTable)
	case access.Grants:
		return records.Of(s.db, grantTable)
	}
	return s.Records[t]
}

// Endpoints returns the endpoints of the module. All except the check are for administrators, unless they grant them to
// others.
func (s *Service) Endpoints() []endpoint.Endpoint {
	rows := []endpoint.Endpoint{
		{Name: "rbac.check", Method: http.MethodPost, Path: "/v1/rbac/check", Subject: access.NoSubject("it changes nothing, and administrators alone ask about others"), Access: access.SignedIn,
			Roles:   []string{access.Everyone},
			Summary: "Check permissions on record types or records, and report their sources.", WithoutFactor: true, Compression: endpoint.Compressed,
			Faults: []apierr.Kind{apierr.UserNotFound}, Handle: endpoint.JSON(http.StatusOK, s.check)},

		{Name: "rbac.explain", Method: http.MethodGet, Path: "/v1/rbac/explain",
			// For callers who may read all grants or the audit trail; the service checks it.
			Access:  access.SignedIn,
			Summary: "List the users who have a permission on a record, with all reasons.",
			Doc:     endpoint.Doc{Search: holderList.Search()},
			Faults:  []apierr.Kind{apierr.RecordNotFound}, Handle: endpoint.JSON(http.StatusOK, s.explain)},

		{Name: "rbac.roles.create", Method: http.MethodPost, Path: "/v1/rbac/roles", Subject: access.NoSubject("a new role has no rights"), Access: access.On(access.Roles, access.Create),
			Assurance: endpoint.SecondFactor,
			Summary:   "Create a role.", Faults: []apierr.Kind{apierr.RoleExists, apierr.RoleInSettings},
			Handle: endpoint.JSON(http.StatusCreated, s.postRole)},
		{Name: "rbac.roles.list", Method: http.MethodGet, Path: "/v1/rbac/roles", Access: access.On(access.Roles, access.Read),
			Summary: "List roles.",
			Doc:     endpoint.Doc{Search: roleList.Search()},
			Handle:  endpoint.JSON(http.StatusOK, s.listRoles)},
		{Name: "rbac.roles.get", Method: http.MethodGet, Path: "/v1/rbac/roles/{id}", Access: access.On(access.Roles, access.Read),
			Summary: "Get a role.", Faults: []apierr.Kind{apierr.RoleNotFound},
			Handle: endpoint.JSON(http.StatusOK, s.getRole)},
		{Name: "rbac.roles.update", Method: http.MethodPut, Path: "/v1/rbac/roles/{id}", Subject: access.RoleIn("id"), Access: access.On(access.Roles, access.Update),
			Assurance: endpoint.SecondFactor, Find: records.Finder(s.db, roleTable, access.Update),
			Summary: "Update the name and description of a role.",
			Faults:  []apierr.Kind{apierr.RoleNotFound, apierr.RoleBuiltIn, apierr.RoleInSettings, apierr.RoleExists, apierr.PreconditionFailed},
			Handle:  endpoint.JSON(http.StatusOK, s.putRole)},
		{Name: "rbac.roles.delete", Method: http.MethodDelete, Path: "/v1/rbac/roles/{id}", Subject: access.RoleIn("id"), Access: access.On(access.Roles, access.Delete),
			Assurance: endpoint.SecondFactor, Find: records.Finder(s.db, roleTable, access.Delete),
			Summary: "Delete a role and its grants, and take it from its holders.",
			Faults:  []apierr.Kind{apierr.RoleNotFound, apierr.RoleBuiltIn, apierr.RoleInSettings, apierr.GrantToSelf, apierr.PreconditionFailed},
			Handle:  endpoint.JSON(http.StatusOK, s.deleteRole)},

		{Name: "rbac.roles.permissions.get", Method: http.MethodGet, Path: "/v1/rbac/roles/{id}/permissions", Access: access.On(access.Roles, access.Read),
			Summary: "Get all permissions and endpoints of a role.", Faults: []apierr.Kind{apierr.RoleNotFound},
			Handle: endpoint.JSON(http.StatusOK, s.matrix)},
		{Name: "rbac.roles.permissions.set", Method: http.MethodPut, Path: "/v1/rbac/roles/{id}/permissions", Subject: access.NoSubject("each grant that is added or removed is compared"), Access: access.On(access.Grants, access.Create),
			Assurance: endpoint.SecondFactor, Find: records.Finder(s.db, roleTable, access.Read),
			Summary: "Replace the permissions and endpoints of a role at once.",
			Faults: []apierr.Kind{apierr.RoleNotFound, apierr.EndpointNotFound, apierr.FixedPermissions, apierr.GrantToSelf, apierr.GrantNotHeld, apierr.GrantExists,
				apierr.RightsNotHeld, apierr.PreconditionFailed},
			Handle: endpoint.JSON(http.StatusOK, s.setMatrix)},

		{Name: "rbac.grants.create", Method: http.MethodPost, Path: "/v1/rbac/grants", Subject: access.NoSubject("the grant is compared with what the caller holds"), Access: access.On(access.Grants, access.Create),
			Assurance: endpoint.SecondFactor, Find: s.findGranted,
			Summary: "Grant a role or a user permissions on a record type or a record, or an endpoint.",
			Faults: []apierr.Kind{apierr.RoleNotFound, apierr.UserNotFound, apierr.EndpointNotFound, apierr.GrantToSelf, apierr.GrantNotHeld, apierr.RightsNotHeld,
				apierr.GrantExists},
			Handle: endpoint.JSON(http.StatusCreated, s.CreateGrant)},
		{Name: "rbac.grants.list", Method: http.MethodGet, Path: "/v1/rbac/grants", Access: access.On(access.Grants, access.Read),
			Summary: "List grants.",
			Doc:     endpoint.Doc{Search: grantList.Search()},
			Handle:  endpoint.JSON(http.StatusOK, s.listGrants)},
		{Name: "rbac.grants.delete", Method: http.MethodDelete, Path: "/v1/rbac/grants/{id}", Subject: access.GrantIn("id"), Access: access.On(access.Grants, access.Delete),
			Assurance: endpoint.SecondFactor, Find: records.Finder(s.db, grantTable, access.Delete),
			Summary: "Delete a grant.", Faults: []apierr.Kind{apierr.GrantNotFound, apierr.PreconditionFailed},
			Handle: endpoint.JSON(http.StatusOK, s.deleteGrant)},

		{Name: "rbac.endpoints.list", Method: http.MethodGet, Path: "/v1/rbac/endpoints", Access: access.SignedIn,
			Summary: "List the endpoints that can be granted.",
			Doc:     endpoint.Doc{Search: endpointList.Search()},
			Handle:  endpoint.JSON(http.StatusOK, s.listEndpoints)},
		{Name: "rbac.record_types.list", Method: http.MethodGet, Path: "/v1/rbac/record-types", Access: access.SignedIn,
			Summary: "List record types.",
			Doc:     endpoint.Doc{Search: typeList.Search()},
			Handle:  endpoint.JSON(http.StatusOK, s.listRecordTypes)},

		{Name: "rbac.rate_limits.list", Method: http.MethodGet, Path: "/v1/rate-limits", Access: access.On(access.RateLimits, access.Read),
			Summary: "List rate-limit rules.",
			Doc:     endpoint.Doc{Search: limitList.Search()},
			Handle:  endpoint.JSON(http.StatusOK, s.listRateLimits)},
		{Name: "rbac.rate_limits.set", Method: http.MethodPut, Path: "/v1/rate-limits", Access: access.On(access.RateLimits, access.Update),
			Assurance: endpoint.SecondFactor, Find: s.findLimited,
			Summary: "Set or remove the rate-limit rule of an endpoint.",
			Faults:  []apierr.Kind{apierr.EndpointNotFound, apierr.PreconditionFailed},
			Handle:  endpoint.JSON(http.StatusOK, s.SetRateLimit)},
	}
	rows = append(rows, s.externalTypeEndpoints()...)
	rows = append(rows, s.reviewEndpoints()...)
	return endpoint.Group("Access control", ratelimit.Private, rows)
}

type putRoleInput struct {
	ID          string  `path:"id"`
	Name        *string `json:"name" maxLength:"100" example:"Auditor"`
	Description *string `json:"description" maxLength:"1000" example:"Reads everything, changes nothing"`
}

// Validate applies the rules of roles.
func (in *putRoleInput) Validate(v *apierr.Fields) { checkRole(v, in.Name, in.Description) }

// Proofs declares how the audit trail reads the records of this module: roles, grants with their permissions, and rate-limit
// rules, record types of other applications, and access reviews. Endpoints and the other record types are not covered, because the program defines
// them.
func Proofs() []records.Proof {
	return []records.Proof{roleProof, grantProof, limitProof, externalTypeProof, reviewProof}
}

// changes are the members of roles and rules whose changes the audit trail keeps.
var changes = &store.ChangeRule{Omit: []string{"modified_at", "modified_by"}}

var roleProof = records.Proof{Type: access.Roles.Name, From: "roles", Key: "id", Read: readRole, Changes: changes}

const selectNameKey = `SELECT name_key FROM roles WHERE id = $1`

// storedRole holds the columns of a role that the API does not show.
type storedRole struct {
	Version int64  `json:"version"`
	NameKey string `json:"name_key"`
}

// auditedRole returns the record that audit entries of a role digest.
func auditedRole(r Role) store.Record {
	return store.Record{Answer: r, Stored: storedRole{r.version, types.Fold(r.Name)}}
}

func readRole(ctx context.Context, q store.Querier, id string) (store.Record, error) {
	r, err := scanRole(q.QueryRow(ctx, `SELECT `+roleColumns+` FROM roles WHERE id = $1`, id))
	if err != nil {
		return store.Record{}, err
	}
	s := storedRole{Version: r.version}
	err = q.QueryRow(ctx, selectNameKey, id).Scan(&s.NameKey)
	return store.Record{Answer: r, Stored: s}, err
}

// grantProof covers a grant and its rows in the tables of permissions. A row there that belongs to no grant is a stray.
var grantProof = records.Proof{
	Type: access.Grants.Name, From: "grant_records", Key: "id", Read: readGrant, Migration: 71, // which added the columns of terms
	Orphans: `
	SELECT g.id FROM grants g
	WHERE NOT EXISTS (SELECT 1 FROM grant_records r
		WHERE r.in_force = TRUE AND COALESCE(r.role_id, r.user_id) = g.principal_id AND r.rec_type = g.rec_type AND COALESCE(r.rec_id, '') = g.rec_id
			AND ',' || r.permissions || ',' LIKE '%,' || g.permission || ',%')
	UNION ALL
	SELECT x.id FROM external_grants x
	WHERE NOT EXISTS (SELECT 1 FROM grant_records r
		WHERE r.in_force = TRUE AND COALESCE(r.role_id, r.user_id) = x.principal_id AND r.rec_type = x.rec_type AND COALESCE(r.rec_id, '') = x.rec_id
			AND ',' || r.permissions || ',' LIKE '%,' || x.permission || ',%')
	UNION ALL
	SELECT e.id FROM endpoint_grants e
	WHERE NOT EXISTS (SELECT 1 FROM grant_records r
		WHERE r.in_force = TRUE AND r.id = e.id AND COALESCE(r.role_id, r.user_id) = e.principal_id AND r.endpoint = e.endpoint)
	LIMIT 1`,
}

const selectEndpointKindOf = `SELECT endpoint, principal_kind FROM endpoint_grants WHERE id = $1 AND principal_id = $2`

// auditedGrant returns the record that audit entries of a grant digest: the grant, and its permissions or endpoint with the
// kind of the principal.
func auditedGrant(g Grant) store.Record {
	kind, _ := g.principal()
	inForce := map[string]string{}
	if g.later {
		return store.Record{Answer: g, Stored: inForce}
	}
	for _, permission := range g.Permissions {
		inForce[permission] = kind
	}
	if g.Endpoint != nil {
		inForce[*g.Endpoint] = kind
	}
	return store.Record{Answer: g, Stored: inForce}
}

func readGrant(ctx context.Context, q store.Querier, id string) (store.Record, error) {
	g, err := scanGrant(q.QueryRow(ctx, `SELECT `+grantColumns+` FROM grant_records WHERE id = $1`, id))
	if err != nil {
		return store.Record{}, err
	}
	_, principal := g.principal()
	statement, args := selectEndpointKindOf, []any{g.ID, principal}
	if g.RecType != nil {
		statement, args = g.rights().kinds, []any{*g.RecType, g.recID(), principal}
	}
	inForce := map[string]string{}
	err = store.Each(ctx, q, func(rows store.Scanner) error {
		var what, kind string
		err := rows.Scan(&what, &kind)
		if g.RecType == nil || slices.Contains(g.Permissions, what) { // the other permissions belong to another grant
			inForce[what] = kind
		}
		return err
	}, statement, args...)
	return store.Record{Answer: g, Stored: inForce}, err
}

var limitProof = records.Proof{Type: access.RateLimits.Name, From: "rate_limit_rules", Key: "endpoint", Read: readLimit, Changes: changes}

// auditedLimit returns the record that audit entries of a rule digest.
func auditedLimit(r RateLimit) store.Record {
	return store.Record{Answer: r, Stored: map[string]int64{"version": r.version}}
}

func readLimit(ctx context.Context, q store.Querier, key string) (store.Record, error) {
	r, err := selectLimit(ctx, q, key)
	return auditedLimit(r), err
}

// auditSeed writes the audit entry of an initial role, grant or rule.
func auditSeed(tx *store.Tx, recType, id string, after store.Record) {
	tx.Audit(store.AuditEntry{Actor: store.NilID, Action: "rbac.seed", RecType: recType, RecID: id, After: after})
}
