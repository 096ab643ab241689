package access

import "context"

type ruleKind uint8

const (
	ruleMissing ruleKind = iota
	rulePublic
	ruleAPIKey
	ruleSignedIn
	ruleRecord
)

// Rule declares who may call an endpoint. The zero Rule is invalid, so that no row gets a default.
type Rule struct {
	kind       ruleKind
	recordType RecordType
	permission Permission
}

// The rules without a record.
var (
	Public   = Rule{kind: rulePublic}   // anybody; state the reason where it is used
	APIKey   = Rule{kind: ruleAPIKey}   // the holder of an API key, without a bearer token
	SignedIn = Rule{kind: ruleSignedIn} // a user with a grant on the endpoint, for data of their own
)

// On requires a user with a grant on the endpoint and the permission on records of the type. Create is checked before the
// handler runs; other permissions are checked by the statement that reads the record.
func On(t RecordType, p Permission) Rule {
	return Rule{kind: ruleRecord, recordType: t, permission: p}
}

// Decided reports whether the rule is not the zero Rule.
func (r Rule) Decided() bool { return r.kind != ruleMissing }

// IsPublic reports whether anybody may call the endpoint.
func (r Rule) IsPublic() bool { return r.kind == rulePublic }

// TakesAPIKey reports whether the rule requires an API key.
func (r Rule) TakesAPIKey() bool { return r.kind == ruleAPIKey }

// TakesBearer reports whether the rule requires a signed-in user.
func (r Rule) TakesBearer() bool { return r.kind == ruleSignedIn || r.kind == ruleRecord }

// Record returns the record type and the permission; ok is false if the rule has none.
func (r Rule) Record() (t RecordType, p Permission, ok bool) {
	return r.recordType, r.permission, r.kind == ruleRecord
}

// String returns the rule as the golden list of endpoints shows it.
func (r Rule) String() string {
	switch r.kind {
	case rulePublic:
		return "public"
	case ruleAPIKey:
		return "api-key"
	case ruleSignedIn:
		return "bearer"
	case ruleRecord:
		return "bearer " + r.recordType.Name + ":" + r.permission.String()
	default:
		return "missing"
	}
}

// Records answers permission checks for the records of one type. Every module with records provides one.
type Records interface {
	// RecordType returns the type.
	RecordType() RecordType
	// Relations returns, by id, the permissions that a user has by relations to records, such as creator, participant or
	// assignee. Grants are not included. Unknown ids are missing from the result.
	Relations(ctx context.Context, userID string, ids []string) (map[string]Permission, error)
	// Related returns, by user id, the names of the relations that give users the permission on a record, such as
	// [RelationCreator]. It is the inverse of Relations. exists is false for an unknown record.
	Related(ctx context.Context, id string, wanted Permission) (users map[string][]string, exists bool, err error)
	// Permitted returns the ids of records on which a user has a permission, by relations and by grants on single records, or of all
	// records, in their order.
	Permitted(ctx context.Context, sought Sought) (ids []string, err error)
}

// Sought says which records [Records.Permitted] returns.
type Sought struct {
	Caller *Caller    // the user with their roles
	Wanted Permission // one permission
	All    bool       // all records of the type, whatever the permission
	After  string     // the last id of the page before; empty: the first page
	Limit  int        // of the ids
}

// The names of relations to records.
const (
	RelationCreator     = "creator"
	RelationSelf        = "self"   // a user to their own user record and profile
	RelationHolder      = "holder" // of a session, a credential, a factor, an identity or a notification
	RelationParticipant = "participant"
	RelationAssignee    = "assignee"
	RelationLinked      = "linked" // a user to a persona
)
