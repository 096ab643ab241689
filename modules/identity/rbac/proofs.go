package rbac

import (
	"context"
	"slices"

	"kontor/modules/kit/records"
	"kontor/modules/kit/types"
	"kontor/server/access"
	"kontor/store"
)

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

const (
	selectKindOf         = `SELECT permission, principal_kind FROM grants WHERE rec_id = $1 AND rec_type = $2 AND principal_id = $3 ORDER BY permission`
	selectExternalKindOf = `SELECT permission, principal_kind FROM external_grants WHERE rec_id = $1 AND rec_type = $2 AND principal_id = $3 ORDER BY permission`
	selectEndpointKindOf = `SELECT endpoint, principal_kind FROM endpoint_grants WHERE id = $1 AND principal_id = $2`
)

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
		statement, args = selectKindOf, []any{g.recID(), *g.RecType, principal}
	}
	if g.external() {
		statement = selectExternalKindOf
	}
	inForce := map[string]string{}
	err = each(ctx, q, func(rows *store.Rows) error {
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
