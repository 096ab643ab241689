package rbac

import (
	"context"
	"net/http"

	"kontor/modules/kit/list"
	"kontor/server/access"
	"kontor/server/apierr"
	"kontor/server/endpoint"
	"kontor/server/ratelimit"
)

// Endpoints returns the endpoints of the module. All except the check are for administrators, unless they grant them to
// others.
func (s *Service) Endpoints() []endpoint.Endpoint {
	rows := []endpoint.Endpoint{
		{Name: "rbac.check", Method: http.MethodPost, Path: "/v1/rbac/check", Subject: access.NoSubject("it changes nothing, and administrators alone ask about others"), Access: access.Own,
			Roles:   []string{access.Advisor, access.Customer},
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
			Assurance: endpoint.SecondFactor,
			Summary:   "Update the name and description of a role.",
			Faults:    []apierr.Kind{apierr.RoleNotFound, apierr.RoleBuiltIn, apierr.RoleInSettings, apierr.RoleExists, apierr.PreconditionFailed},
			Handle:    endpoint.JSON(http.StatusOK, s.putRole)},
		{Name: "rbac.roles.delete", Method: http.MethodDelete, Path: "/v1/rbac/roles/{id}", Subject: access.RoleIn("id"), Access: access.On(access.Roles, access.Delete),
			Assurance: endpoint.SecondFactor,
			Summary:   "Delete a role and its grants, and take it from its holders.",
			Faults:    []apierr.Kind{apierr.RoleNotFound, apierr.RoleBuiltIn, apierr.RoleInSettings, apierr.GrantToSelf, apierr.PreconditionFailed},
			Handle:    endpoint.JSON(http.StatusOK, s.deleteRole)},

		{Name: "rbac.roles.permissions.get", Method: http.MethodGet, Path: "/v1/rbac/roles/{id}/permissions", Access: access.On(access.Roles, access.Read),
			Summary: "Get all permissions and endpoints of a role.", Faults: []apierr.Kind{apierr.RoleNotFound},
			Handle: endpoint.JSON(http.StatusOK, s.matrix)},
		{Name: "rbac.roles.permissions.set", Method: http.MethodPut, Path: "/v1/rbac/roles/{id}/permissions", Subject: access.NoSubject("each grant that is added or removed is compared"), Access: access.On(access.Grants, access.Create),
			Assurance: endpoint.SecondFactor,
			Summary:   "Replace the permissions and endpoints of a role at once.",
			Faults: []apierr.Kind{apierr.RoleNotFound, apierr.EndpointNotFound, apierr.FixedPermissions, apierr.GrantToSelf, apierr.GrantNotHeld, apierr.GrantExists,
				apierr.RightsNotHeld, apierr.PreconditionFailed},
			Handle: endpoint.JSON(http.StatusOK, s.setMatrix)},

		{Name: "rbac.grants.create", Method: http.MethodPost, Path: "/v1/rbac/grants", Subject: access.NoSubject("the grant is compared with what the caller holds"), Access: access.On(access.Grants, access.Create),
			Assurance: endpoint.SecondFactor,
			Summary:   "Grant a role or a user permissions on a record type or a record, or an endpoint.",
			Faults:    []apierr.Kind{apierr.RoleNotFound, apierr.UserNotFound, apierr.EndpointNotFound, apierr.GrantToSelf, apierr.GrantNotHeld, apierr.GrantExists},
			Handle:    endpoint.JSON(http.StatusCreated, s.CreateGrant)},
		{Name: "rbac.grants.list", Method: http.MethodGet, Path: "/v1/rbac/grants", Access: access.On(access.Grants, access.Read),
			Summary: "List grants.",
			Doc:     endpoint.Doc{Search: grantList.Search()},
			Handle:  endpoint.JSON(http.StatusOK, s.listGrants)},
		{Name: "rbac.grants.delete", Method: http.MethodDelete, Path: "/v1/rbac/grants/{id}", Subject: access.GrantIn("id"), Access: access.On(access.Grants, access.Delete),
			Assurance: endpoint.SecondFactor,
			Summary:   "Delete a grant.", Faults: []apierr.Kind{apierr.GrantNotFound, apierr.PreconditionFailed},
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
			Assurance: endpoint.SecondFactor,
			Summary:   "Set or remove the rate-limit rule of an endpoint.",
			Faults:    []apierr.Kind{apierr.EndpointNotFound, apierr.PreconditionFailed},
			Handle:    endpoint.JSON(http.StatusOK, s.SetRateLimit)},
	}
	rows = append(rows, s.externalTypeEndpoints()...)
	rows = append(rows, s.reviewEndpoints()...)
	for i := range rows {
		rows[i].Tag, rows[i].Limit = "Access control", ratelimit.Private
	}
	return rows
}

type idInput struct {
	ID string `path:"id"`
}

type listInput struct {
	Query list.Params `query:"*"`
}

type putRoleInput struct {
	ID          string  `path:"id"`
	Name        *string `json:"name" maxLength:"100" example:"Auditor"`
	Description *string `json:"description" maxLength:"1000" example:"Reads everything, changes nothing"`
}

// Validate applies the rules of RoleInput.
func (in *putRoleInput) Validate(v *apierr.Fields) {
	role := RoleInput{in.Name, in.Description}
	role.Validate(v)
	in.Name, in.Description = role.Name, role.Description
}

func (s *Service) postRole(ctx context.Context, in createRoleInput) (Role, error) {
	return s.CreateRole(ctx, RoleInput(in))
}

func (s *Service) getRole(ctx context.Context, in idInput) (Role, error) { return s.Role(ctx, in.ID) }

func (s *Service) listRoles(ctx context.Context, in listInput) (list.Page[Role], error) {
	return s.Roles(ctx, in.Query)
}

func (s *Service) putRole(ctx context.Context, in putRoleInput) (Role, error) {
	return s.UpdateRole(ctx, in.ID, RoleInput{in.Name, in.Description})
}

func (s *Service) deleteRole(ctx context.Context, in idInput) (endpoint.Message, error) {
	return endpoint.Confirm(ctx, s.Texts, "rbac.role_deleted"), s.DeleteRole(ctx, in.ID)
}

func (s *Service) listGrants(ctx context.Context, in listInput) (list.Page[Grant], error) {
	return s.Grants(ctx, in.Query)
}

func (s *Service) deleteGrant(ctx context.Context, in idInput) (endpoint.Message, error) {
	return endpoint.Confirm(ctx, s.Texts, "rbac.grant_deleted"), s.DeleteGrant(ctx, in.ID)
}

func (s *Service) listRateLimits(ctx context.Context, in listInput) (list.Page[RateLimit], error) {
	return s.RateLimits(ctx, in.Query)
}
