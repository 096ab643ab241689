package access

// Check asks whether a user has a permission on a record type or on one record, may call an endpoint, or both.
type Check struct {
	RecType    string `json:"rec_type" doc:"Name of a record type."`
	Permission string `json:"permission" enum:"create,read,update,delete,read_all"`
	RecID      string `json:"rec_id" doc:"A record. Without it, or with the nil id, the check is about the type as a whole."`
	Endpoint   string `json:"endpoint" example:"GET /v1/customers/{id}" doc:"An endpoint that the user must be allowed to call, as GET /v1/rbac/endpoints names it: alone, or in addition to the permission."`
}

// Decision is the answer to a check. If several sources allow it, the decision names the first in this order:
//   - the relation to the record (owner)
//   - a grant on the record to the user
//   - a grant on the record to a role of the user
//   - a grant on the type to a role of the user
//   - a grant on the type to the user
//
// For an endpoint alone these are a grant to a role of the user, and a grant to the user.
type Decision struct {
	Allowed  bool   `json:"allowed"`
	Source   string `json:"source" enum:"role,user,owner," doc:"The source of the permission; empty if it is denied, or if the endpoint needs no user."`
	SourceID string `json:"source_id" doc:"Id of the role, the user or the record; the nil id without a source."`
	Missing  bool   `json:"missing,omitzero" doc:"true if it is denied because there is no such record, for callers who could learn it from the address of the record; missing from other decisions."`
}
