package rbac

import (
	"context"
	"fmt"
	"hash/fnv"
	"slices"
	"sort"

	"kontor/server/access"
	"kontor/server/apierr"
	"kontor/store"
)

// Matrix holds all grants of a role on record types as a whole and on endpoints. Grants on single records are not part of it.
type Matrix struct {
	RoleID    string            `json:"role_id" format:"uuid"`
	Fixed     bool              `json:"fixed" doc:"true for Administrator, which may do everything without grants."`
	Holders   int64             `json:"holders" doc:"The number of users who hold the role."`
	Types     []TypePermissions `json:"types" doc:"Every record type, in alphabetical order."`
	Endpoints []string          `json:"endpoints" doc:"The endpoints that the role may call, in alphabetical order." example:"GET /v1/customers/{id}"`
}

// TypePermissions are the permissions on a record type as a whole.
type TypePermissions struct {
	RecType     string   `json:"rec_type" example:"customers"`
	Permissions []string `json:"permissions" enum:"create,read,update,delete,read_all"`
}

// ETag covers the permissions and endpoints, and not the number of holders.
func (m Matrix) ETag() string {
	h := fnv.New64a()
	for _, t := range m.Types {
		fmt.Fprintf(h, "%s %q\n", t.RecType, t.Permissions)
	}
	fmt.Fprintf(h, "%q", m.Endpoints)
	return fmt.Sprintf("%016x", h.Sum64())
}

// permissions returns the permissions by name of the record type.
func (m Matrix) permissions() map[string]access.Permission {
	found := map[string]access.Permission{}
	for _, t := range m.Types {
		found[t.RecType] = parsePermissions(t.Permissions)
	}
	return found
}

func parsePermissions(names []string) (p access.Permission) {
	for _, name := range names {
		one, _ := access.ParsePermission(name)
		p |= one
	}
	return p
}

const countHolders = `SELECT COUNT(*) FROM held_roles WHERE role_id = $1`

// matrix returns the grants of a role that the caller may read. It returns apierr.RoleNotFound and apierr.NoAccess.
func (s *Service) matrix(ctx context.Context, in idInput) (m Matrix, err error) {
	err = s.db.View(ctx, func(v *store.View) error {
		if _, err := roleTable.Get(ctx, v, in.ID, access.Read); err != nil {
			return err
		}
		m, err = readMatrix(ctx, v, in.ID)
		return err
	})
	return m, err
}

func readMatrix(ctx context.Context, q store.Querier, roleID string) (Matrix, error) {
	m := Matrix{RoleID: roleID, Fixed: roleID == access.Administrator, Endpoints: []string{}}
	types, endpoints := map[string]map[string]access.Permission{}, map[string][]string{}
	err := readTypeGrants(ctx, q, types, selectTypeGrants+` AND principal_id = $1`, roleID)
	if err == nil {
		err = readEndpointGrants(ctx, q, endpoints, selectEndpointGrants+` WHERE principal_id = $1`, roleID)
	}
	if err == nil {
		err = q.QueryRow(ctx, countHolders, roleID).Scan(&m.Holders)
	}
	if err != nil {
		return m, err
	}
	for _, t := range access.RecordTypes() {
		held := types[roleID][t.Name]
		if m.Fixed {
			held = access.All
		}
		m.Types = append(m.Types, TypePermissions{t.Name, held.Names()})
	}
	sort.Slice(m.Types, func(i, j int) bool { return compareText(m.Types[i].RecType, m.Types[j].RecType) < 0 })
	m.Endpoints = append(m.Endpoints, endpoints[roleID]...)
	slices.Sort(m.Endpoints)
	return m, nil
}

func compareText(a, b string) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

// MatrixInput contains the wanted grants of a role. A missing member keeps what the role has.
type MatrixInput struct {
	ID        string             `path:"id"`
	Types     *[]TypePermissions `json:"types" required:"false" nullable:"false" doc:"The permissions on all record types. A type that is not listed gets none."`
	Endpoints *[]string          `json:"endpoints" required:"false" nullable:"false" doc:"All endpoints that the role may call, as GET /v1/rbac/endpoints lists them." example:"GET /v1/customers/{id}"`
}

// maxMatrix limits the entries of each list; it exceeds the number of record types and endpoints.
const maxMatrix = 1000

// Validate checks types and permissions. The service checks endpoints.
func (in *MatrixInput) Validate(v *apierr.Fields) {
	if in.Types != nil {
		if len(*in.Types) > maxMatrix {
			v.Add("types", "invalid.max_items", apierr.Args{"Max": maxMatrix})
			return
		}
		seen := map[string]bool{}
		for i, t := range *in.Types {
			at := fmt.Sprintf("types.%d.", i)
			if _, known := access.LookupType(t.RecType); !known || seen[t.RecType] {
				v.Add(at+"rec_type", "invalid.unknown_record_type")
			}
			seen[t.RecType] = true
			for _, name := range t.Permissions {
				if _, known := access.ParsePermission(name); !known {
					v.Add(at+"permissions", "invalid.one_of", apierr.Args{"Values": names(access.All)})
					break
				}
			}
		}
	}
	if in.Endpoints != nil && len(*in.Endpoints) > maxMatrix {
		v.Add("endpoints", "invalid.max_items", apierr.Args{"Max": maxMatrix})
	}
}

// setMatrix replaces the grants of a role on record types and endpoints in one transaction, in force for the next request. The
// rules of single grants apply to each of them. Callers can only add what they hold themselves, and nothing to a role of theirs.
// They can only remove grants that they may delete. Administrator cannot be changed, so that its holders always keep all rights.
//
// It returns apierr.RoleNotFound, apierr.NoAccess, apierr.FixedPermissions, apierr.EndpointNotFound, apierr.GrantToSelf,
// apierr.GrantNotHeld and apierr.PreconditionFailed.
func (s *Service) setMatrix(ctx context.Context, in MatrixInput) (m Matrix, err error) {
	err = s.db.InTx(ctx, func(tx *store.Tx) error {
		if _, err := roleTable.Get(ctx, tx, in.ID, access.Read); err != nil {
			return err
		}
		before, err := readMatrix(ctx, tx, in.ID)
		if err != nil {
			return err
		}
		change := matrixChange{Service: s, roleID: in.ID, userID: access.From(ctx).UserID}
		change.compare(before, in)
		if m = before; change.empty() {
			return checkMatrixMatch(ctx, before)
		}
		if err := checkMatrixMatch(ctx, before); err != nil {
			return err
		}
		if before.Fixed {
			return apierr.FixedPermissions
		}
		if err := change.apply(ctx, tx); err != nil {
			return err
		}
		if m, err = readMatrix(ctx, tx, in.ID); err != nil {
			return err
		}
		change.audit(ctx, tx, before, m)
		tx.Announce(s.changed, "")
		return nil
	})
	return m, err
}
