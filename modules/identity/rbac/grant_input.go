package rbac

import (
	"kontor/modules/kit/types"
	"kontor/server/access"
	"kontor/server/apierr"
	"kontor/store"
)

// GrantInput contains exactly one of role and user. It contains either an endpoint, or a record type with permissions and,
// optionally, one record.
type GrantInput struct {
	RoleID      string   `json:"role_id" required:"false" doc:"Either role_id or user_id."`
	UserID      string   `json:"user_id" required:"false" example:"-" doc:"Either role_id or user_id."`
	RecType     string   `json:"rec_type" required:"false" doc:"Either rec_type with permissions, or endpoint."`
	Permissions []string `json:"permissions" example:"read" doc:"create, read, update, delete and read_all; on a record type of another application those that it declares."`
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
		ID: store.NewID(), RoleID: types.NilIfEmpty(in.RoleID), UserID: types.NilIfEmpty(in.UserID), RecType: types.NilIfEmpty(in.RecType),
		RecID: types.NilIfEmpty(in.RecID), Permissions: in.Permissions, Endpoint: types.NilIfEmpty(in.Endpoint),
		StartsAt: in.StartsAt, ExpiresAt: in.ExpiresAt,
	}
}
