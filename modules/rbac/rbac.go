// Package rbac keeps roles, grants and stored rate-limit rules, puts them in force and answers what somebody may do.
//
// Grants on record types and on endpoints and the rate-limit rules are few: they are kept in memory as one
// [access.Policy], which is loaded again as a whole after every commit that changes one of them, before the change is
// acknowledged. Grants on single records stay in their table and are read by the statement that reads the record.
//
// Which user holds which role is kept here, too (user_roles), and written by the module of users; relations of users
// to records belong to the modules of the records, which answer for them through [access.Records].
package rbac

import (
	"log/slog"

	"kontor/modules/kit/records"
	"kontor/server/access"
	"kontor/server/endpoint"
	"kontor/store"
)

// sessions is what rbac needs from the keeper of sessions: they carry the roles of their users.
type sessions interface {
	// Changed forgets what is remembered of the user's sessions once the transaction is committed.
	Changed(tx *store.Tx, userID string)
}

// Options are what a service works with beside its database.
type Options struct {
	// Policy is where the snapshot is put in force; the server reads it.
	Policy *access.Current
	// Sessions hears of users who lose a role.
	Sessions sessions
	// Texts are those of the locale files.
	Texts endpoint.Texts
	// Records answer for the records of each type. The map may be filled until [Service.Start]; a type without an
	// entry has no records that a grant could name. Roles and grants are answered for by this package.
	Records map[access.RecordType]access.Records
	// Log hears of what goes wrong after a commit; nil is slog's default.
	Log *slog.Logger
}

// Service administers roles, grants and rate-limit rules and answers permission checks.
type Service struct {
	Options
	db     *store.DB
	policy snapshot
	table  map[string]Endpoint // by key: what this process serves, set by Start
}

// New makes a service. Nothing is in force before [Service.Start].
func New(db *store.DB, o Options) *Service {
	if o.Log == nil {
		o.Log = slog.Default()
	}
	return &Service{
		Options: o, db: db,
		policy: snapshot{db: db, current: o.Policy, log: o.Log},
	}
}

// records gives who answers for the records of a type, or nil.
func (s *Service) records(t access.RecordType) access.Records {
	switch t {
	case access.Roles:
		return records.Of(s.db, roleTable)
	case access.Grants:
		return records.Of(s.db, grantTable)
	}
	return s.Records[t]
}
