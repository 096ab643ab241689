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

// Rule says who may come in at an endpoint. The zero Rule is no decision and stops the program at start.
type Rule struct {
	kind       ruleKind
	recordType RecordType
	permission Permission
}

// The rules without a record.
var (
	Public   = Rule{kind: rulePublic}   // anybody; say why where it is used
	APIKey   = Rule{kind: ruleAPIKey}   // the holder of an API key, without a bearer token
	SignedIn = Rule{kind: ruleSignedIn} // a user with a grant on the endpoint, for data of his own
)

// On asks for a user with a grant on the endpoint, who wants to do the action on records of the type. Create is
// decided before the handler runs; the other actions are decided in the statement that reads the record.
func On(t RecordType, p Permission) Rule {
	return Rule{kind: ruleRecord, recordType: t, permission: p}
}

// Decided reports whether the rule says anything at all.
func (r Rule) Decided() bool { return r.kind != ruleMissing }

// IsPublic reports whether the rule lets anybody in.
func (r Rule) IsPublic() bool { return r.kind == rulePublic }

// TakesAPIKey reports whether the rule asks for an API key.
func (r Rule) TakesAPIKey() bool { return r.kind == ruleAPIKey }

// TakesBearer reports whether the rule asks for a signed-in user.
func (r Rule) TakesBearer() bool { return r.kind == ruleSignedIn || r.kind == ruleRecord }

// Record gives the record type and the action; ok is false where the rule names none.
func (r Rule) Record() (t RecordType, p Permission, ok bool) {
	return r.recordType, r.permission, r.kind == ruleRecord
}

// String is the rule as the golden list of endpoints shows it.
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
	// Relations returns, by id, the permissions that a user has by relations to records, such as creator, participant or
	// assignee. Grants are not included. Unknown ids are missing from the result.
	Relations(ctx context.Context, userID string, ids []string) (map[string]Permission, error)
}
