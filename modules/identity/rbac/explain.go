package rbac

import (
	"context"
	"maps"
	"net/http"
	"slices"
	"strings"

	"kontor/modules/kit/list"
	"kontor/server/access"
	"kontor/server/apierr"
	"kontor/server/endpoint"
	"kontor/store"
)

// Holder is a user who has a permission on a record, with all reasons.
type Holder struct {
	UserID  string   `json:"user_id" format:"uuid"`
	Status  string   `json:"status" enum:"pending,active,disabled" doc:"Only active users can use the permission."`
	Kind    string   `json:"kind" enum:"person,service"`
	Calls   bool     `json:"calls" doc:"Whether a grant lets the user call an endpoint that reads records of the type. Without one, requests get 403 although the user has the permission. Always true for permissions other than read."`
	Reasons []Reason `json:"reasons" doc:"Every source of the permission, relations first."`
}

// Reason is one source of a permission.
type Reason struct {
	Source   string  `json:"source" enum:"owner,user,role" doc:"owner for a relation to the record, user for a grant to the user, role for a grant to a role of the user."`
	Relation string  `json:"relation" enum:"creator,self,holder,participant,assignee,linked," doc:"The relation; empty for a grant."`
	RoleID   *string `json:"role_id" format:"uuid"`
	RoleName string  `json:"role_name" example:"Advisor" doc:"Empty without a role."`
	GrantID  *string `json:"grant_id" format:"uuid" doc:"null for a relation, and for administrators, who need no grant."`
	Scope    string  `json:"scope" enum:"record,type," doc:"What the grant is on: this record or the record type. Empty for a relation."`
	Granted  string  `json:"granted" enum:"create,read,update,delete,read_all," doc:"The granted permission: read_all includes read."`
}

// EachUser names the user.
func (h Holder) EachUser(add func(id string)) { add(h.UserID) }

type explainInput struct {
	Type       string      `query:"type" example:"customers" doc:"Name of a record type."`
	ID         string      `query:"id" format:"uuid" doc:"The record."`
	Permission string      `query:"permission" enum:"read,update,delete" default:"read" doc:"The permission to explain."`
	Query      list.Params `query:"*"`

	recordType access.RecordType
	permission access.Permission
}

// Validate looks up type and permission and normalizes the id.
func (in *explainInput) Validate(v *apierr.Fields) {
	known := false
	switch in.recordType, known = access.LookupType(in.Type); {
	case in.Type == "":
		v.Add("type", "invalid.required")
	case !known:
		v.Add("type", "invalid.unknown_record_type")
	}
	in.permission = access.Read
	if in.Permission != "" {
		permission, known := access.ParsePermission(in.Permission)
		if !known || permission&recordPermissions == 0 {
			v.Add("permission", "invalid.one_of", apierr.Args{"Values": names(recordPermissions)})
		}
		in.permission = permission
	}
	if in.ID == "" {
		v.Add("id", "invalid.required")
	}
	canonicalID(v, "id", &in.ID)
}

// explain returns the users who have a permission on a record. It names roles and grants of others, and shows whether the record exists.
// So it is for readers of the audit trail, and for callers who may read all grants and could learn from the address of the
// record whether it exists. It returns apierr.NoAccess and apierr.RecordNotFound.
func (s *Service) explain(ctx context.Context, in explainInput) (list.Page[Holder], error) {
	caller := access.From(ctx)
	if !caller.May(access.Audit, access.Read) && (!caller.May(access.Grants, access.ReadAll) || !s.learnsExistence(caller, in.Type)) {
		return list.Page[Holder]{}, apierr.NoAccess
	}
	owner := s.recordsOf(in.recordType)
	if owner == nil {
		return list.Page[Holder]{}, apierr.RecordNotFound
	}
	related, exists, err := owner.Related(ctx, in.ID, in.permission)
	if err != nil {
		return list.Page[Holder]{}, err
	}
	if !exists {
		return list.Page[Holder]{}, apierr.RecordNotFound
	}
	page, err := holderList.Page(ctx, s.db, in.Query, holders(in, related))
	if err != nil {
		return page, err
	}
	return page, s.addReasons(ctx, page.Data.Rows, in, related)
}

var holderList = list.New(list.Source[Holder]{
	From: "people", Columns: "id, status, kind", ID: "id", Tables: []string{"users"},
	Fields: list.Fields{
		{Name: "user_id", Type: list.UUID, Column: "id"},
		{Name: "display_name", Type: list.Text, Column: "display_name"},
		{Name: "status", Type: list.Text, Column: "status", Key: "status"},
		{Name: "kind", Type: list.Text, Column: "kind", Key: "kind"},
	},
	Scan: func(row list.Row) (Holder, error) {
		h := Holder{Reasons: []Reason{}}
		err := row.Scan(&h.UserID, &h.Status, &h.Kind)
		return h, err
	},
})

// granting is the condition that a row of grants gives the permission on the record: $1 is the type, $2 the record, $3 the
// permission, and $4 the one that includes it on the type as a whole.
const granting = `g.rec_type = $1 AND (g.rec_id = $2 AND g.permission = $3 OR g.rec_id = '' AND g.permission IN ($3, $4))`

// holders returns the condition that a user has the permission: by a relation, or by a grant to them or to a role of theirs.
func holders(in explainInput, related map[string][]string) list.Where {
	args := []any{in.recordType.Name, in.ID, in.permission.String(), includes(in.permission).String(), access.Administrator}
	ids := slices.Sorted(maps.Keys(related)) // equal sets have equal arguments, under which totals are remembered
	const principals = `SELECT g.principal_id FROM grants g WHERE ` + granting
	return list.Where{
		SQL: `(id IN (` + store.In(len(args)+1, len(ids)) + `)
			OR id IN (` + principals + `)
			OR id IN (SELECT h.user_id FROM held_roles h WHERE h.role_id = $5 OR h.role_id IN (` + principals + `)))`,
		Args: store.AppendIn(args, ids), Tables: []string{"grants", "user_roles"},
	}
}

// includes returns the permission on a type that includes another one.
func includes(p access.Permission) access.Permission {
	if p == access.Read {
		return access.ReadAll
	}
	return p
}

// addReasons adds to each user why they have the permission.
func (s *Service) addReasons(ctx context.Context, rows []Holder, in explainInput, related map[string][]string) error {
	if len(rows) == 0 {
		return nil
	}
	held, err := s.rolesOfAll(ctx, rows)
	if err != nil {
		return err
	}
	grants, err := s.grantsOn(ctx, in, rows, held)
	if err != nil {
		return err
	}
	for i := range rows {
		h := &rows[i]
		for _, relation := range related[h.UserID] {
			h.Reasons = append(h.Reasons, Reason{Source: sourceOwner, Relation: relation})
		}
		h.Reasons = append(h.Reasons, grants[h.UserID]...)
		for _, role := range held[h.UserID] {
			if role.id == access.Administrator {
				h.Reasons = append(h.Reasons, Reason{Source: sourceRole, RoleID: &role.id, RoleName: role.name, Scope: "type", Granted: in.permission.String()})
			}
			for _, r := range grants[role.id] {
				r.Source, r.RoleID, r.RoleName = sourceRole, &role.id, role.name
				h.Reasons = append(h.Reasons, r)
			}
		}
		h.Calls = in.permission != access.Read || s.mayCallAny(h, held[h.UserID], s.readers[in.recordType.Name])
	}
	return nil
}

// heldRole is a role that a user holds.
type heldRole struct{ id, name string }

const selectHeldRoles = `SELECT h.user_id, r.id, r.name FROM held_roles h JOIN roles r ON r.id = h.role_id WHERE h.user_id IN (`

// rolesOfAll reads the roles of the users of a page.
func (s *Service) rolesOfAll(ctx context.Context, rows []Holder) (map[string][]heldRole, error) {
	ids := make([]string, len(rows))
	for i, h := range rows {
		ids[i] = h.UserID
	}
	held := map[string][]heldRole{}
	err := store.Each(ctx, s.db, func(row store.Scanner) error {
		var user string
		var role heldRole
		if err := row.Scan(&user, &role.id, &role.name); err != nil {
			return err
		}
		held[user] = append(held[user], role)
		return nil
	}, selectHeldRoles+store.In(1, len(ids))+`) ORDER BY r.name_key, r.id`, store.AppendIn(nil, ids)...)
	return held, err
}

// selectGrantsOn reads the grants that include the permission $3, or the one that includes it on a type, $4.
const selectGrantsOn = `
	SELECT r.id, COALESCE(r.role_id, r.user_id), COALESCE(r.rec_id, ''), r.permissions
	FROM grant_records r
	WHERE r.in_force = TRUE AND r.rec_type = $1 AND (r.rec_id IS NULL OR r.rec_id = $2) AND COALESCE(r.role_id, r.user_id) IN (`

// grantsOn reads the grants that give the permission to users of a page or to their roles, by principal.
func (s *Service) grantsOn(ctx context.Context, in explainInput, rows []Holder, held map[string][]heldRole) (map[string][]Reason, error) {
	var principals []string
	for _, h := range rows {
		principals = append(principals, h.UserID)
		for _, role := range held[h.UserID] {
			principals = append(principals, role.id)
		}
	}
	principals = unique(principals)
	found := map[string][]Reason{}
	err := store.Each(ctx, s.db, func(row store.Scanner) error {
		var id, principal, recID, permissions string
		if err := row.Scan(&id, &principal, &recID, &permissions); err != nil {
			return err
		}
		for name := range strings.SplitSeq(permissions, ",") {
			r := Reason{Source: sourceUser, GrantID: &id, Scope: "type", Granted: name}
			gives := name == in.permission.String()
			if recID != "" {
				r.Scope = "record"
			} else {
				gives = gives || name == includes(in.permission).String()
			}
			if gives {
				found[principal] = append(found[principal], r)
			}
		}
		return nil
	}, selectGrantsOn+store.In(3, len(principals))+`) ORDER BY r.rec_id, r.id`,
		store.AppendIn([]any{in.recordType.Name, in.ID}, principals)...)
	return found, err
}

// mayCallAny reports whether a user or one of their roles has a grant on one of the endpoints, or none are known.
func (s *Service) mayCallAny(h *Holder, held []heldRole, endpoints []reader) bool {
	caller := access.Caller{UserID: h.UserID}
	for _, role := range held {
		caller.Roles = append(caller.Roles, role.id)
	}
	caller.Roles = access.HeldRoles(caller.Roles, h.Status == "active" && h.Kind == "person")
	holder := caller.WithPolicy(s.Policy.Load())
	return len(endpoints) == 0 || slices.ContainsFunc(endpoints, func(e reader) bool { return holder.MayCall(e.key) })
}

// reader is an endpoint that reads records of a type.
type reader struct {
	key, name string
	alone     bool // it reads one record, by its id alone
}

// readersOf returns, by record type, the endpoints that read one record, or the list of a type without such an endpoint. The names
// of these rows end with the name of the type and the operation, such as rbac.roles.get.
func readersOf(table []endpoint.Endpoint) map[string][]reader {
	found := map[string][]reader{}
	for _, operation := range []string{".get", ".list"} {
		for _, e := range table {
			t, _, ok := e.Access.Record()
			if !ok || e.Method != http.MethodGet || !strings.HasSuffix("."+e.Name, "."+t.Name+operation) {
				continue
			}
			if operation == ".get" || len(found[t.Name]) == 0 {
				found[t.Name] = append(found[t.Name], reader{e.Key(), e.Name, operation == ".get" && len(endpoint.PathNames(e.Path)) == 1})
			}
		}
	}
	return found
}
