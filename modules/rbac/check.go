package rbac

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	"kontor/modules/kit/types"
	"kontor/server/access"
	"kontor/server/apierr"
	"kontor/store"
)

// Check asks for one permission on a record type, or on one record.
type Check struct {
	RecType    string `json:"rec_type" doc:"Name of a record type."`
	Permission string `json:"permission" enum:"create,read,update,delete,read_all"`
	RecID      string `json:"rec_id" doc:"Nothing or the nil id asks about the type as a whole."` // nothing or the nil id: the type as a whole
}

// Decision answers a check: whether it is allowed, and by what. Where several things allow it, the first of these is
// named: the relation to the record (owner), a grant on the record to the user, to a role of his, a grant on the type
// to a role of his, to the user.
type Decision struct {
	Allowed  bool   `json:"allowed"`
	Source   string `json:"source" enum:"role,user,owner," doc:"What allows it; empty when nothing does."`    // role, user, owner or nothing
	SourceID string `json:"source_id" doc:"Id of the role, the user or the record; the nil id when refused."` // of the role, the user or the record; nil id when refused
}

// The sources of a right.
const (
	sourceOwner = "owner"
	sourceUser  = "user"
	sourceRole  = "role"
)

var refused = Decision{SourceID: store.NilID}

// maxChecks is how much one request may ask for.
const maxChecks = 1000

type checksInput struct {
	Checks []Check `json:"checks" minItems:"1" maxItems:"1000"`
	UserID string  `json:"user_id" doc:"For administrators: ask for this user."` // for administrators: ask for this user instead of oneself
}

// Validate counts the checks and brings ids into their stored form.
func (in *checksInput) Validate(v *apierr.Fields) {
	switch {
	case len(in.Checks) == 0:
		v.Add("checks", "invalid.min_items", apierr.Args{"Min": 1})
	case len(in.Checks) > maxChecks:
		v.Add("checks", "invalid.max_items", apierr.Args{"Max": maxChecks})
		return
	}
	for i := range in.Checks {
		if id := &in.Checks[i].RecID; *id != "" && !isCanonical(*id) {
			canonicalID(v, "checks."+strconv.Itoa(i)+".rec_id", id)
		}
	}
	canonicalID(v, "user_id", &in.UserID)
}

func isCanonical(id string) bool {
	parsed, err := types.ParseID(id)
	return err == nil && parsed == id
}

type checkOutput struct {
	Results []Decision `json:"results"`
}

// check answers for the caller, or for another user when an administrator asks.
func (s *Service) check(ctx context.Context, in checksInput) (checkOutput, error) {
	caller := access.From(ctx)
	if in.UserID != "" && in.UserID != caller.UserID {
		if !caller.Administrator() {
			return checkOutput{}, apierr.NoAccess
		}
		known, err := s.exists(ctx, access.Users, in.UserID)
		if err != nil {
			return checkOutput{}, err
		}
		if !known {
			return checkOutput{}, apierr.UserNotFound
		}
		roles, err := rolesOf(ctx, s.db, in.UserID)
		if err != nil {
			return checkOutput{}, err
		}
		caller = access.Caller{UserID: in.UserID, Roles: roles}.WithPolicy(s.Policy.Load())
	}
	results, err := s.Decide(ctx, caller, in.Checks)
	return checkOutput{results}, err
}

// question is a check as the program understands it.
type question struct {
	recordType access.RecordType
	permission access.Permission
	recID      string
	understood bool
}

func understand(c Check) question {
	t, typeKnown := access.LookupType(c.RecType)
	permission, permissionKnown := access.ParsePermission(c.Permission)
	q := question{recordType: t, permission: permission, recID: c.RecID, understood: typeKnown && permissionKnown}
	if q.recID == store.NilID {
		q.recID = ""
	}
	return q
}

// Decide answers checks for a caller, in their order. What is unknown (type, permission, record) is refused. It reads
// what it needs once for each record type, and all grants on records at once.
func (s *Service) Decide(ctx context.Context, caller *access.Caller, checks []Check) ([]Decision, error) {
	questions := make([]question, len(checks))
	byType := make([][]string, len(access.RecordTypes()))
	var all []string
	for i, c := range checks {
		q := understand(c)
		questions[i] = q
		if q.understood && q.recID != "" {
			byType[q.recordType.Index()] = append(byType[q.recordType.Index()], q.recID)
			all = append(all, q.recID)
		}
	}
	known := knowledge{caller: caller, standings: make([]map[string]access.Standing, len(byType))}
	for _, t := range access.RecordTypes() {
		ids := byType[t.Index()]
		records := s.records(t)
		if len(ids) == 0 || records == nil {
			continue
		}
		var err error
		if known.standings[t.Index()], err = records.Standings(ctx, caller.UserID, unique(ids)); err != nil {
			return nil, fmt.Errorf("standings of %s: %w", t, err)
		}
	}
	var err error
	if known.grants, err = recordGrants(ctx, s.db, caller, unique(all)); err != nil {
		return nil, fmt.Errorf("grants on records: %w", err)
	}
	decisions := make([]Decision, len(questions))
	for i, q := range questions {
		decisions[i] = known.decide(q)
	}
	return decisions, nil
}

// unique sorts and drops what stands twice.
func unique(ids []string) []string {
	slices.Sort(ids)
	return slices.Compact(ids)
}

// knowledge is what the decisions of one request are made from.
type knowledge struct {
	caller    *access.Caller
	standings []map[string]access.Standing // by record type
	grants    map[recordRight]holders
}

// recordRight is a permission on one record.
type recordRight struct {
	recID, recType string
	permission     access.Permission
}

// holders tells who of a user and his roles has a right by a grant on the record.
type holders struct {
	user bool
	role string // the first in the caller's order
}

func (k *knowledge) decide(q question) Decision {
	if !q.understood {
		return refused
	}
	if q.recID != "" {
		standing, exists := k.standings[q.recordType.Index()][q.recID]
		if !exists {
			return refused
		}
		if standing.Own.Has(q.permission) {
			return Decision{Allowed: true, Source: sourceOwner, SourceID: q.recID}
		}
		held := k.grants[recordRight{q.recID, q.recordType.Name, q.permission}]
		if held.user {
			return Decision{Allowed: true, Source: sourceUser, SourceID: k.caller.UserID}
		}
		if held.role != "" {
			return Decision{Allowed: true, Source: sourceRole, SourceID: held.role}
		}
	}
	if source, id, ok := k.caller.Source(q.recordType, q.permission); ok {
		return Decision{Allowed: true, Source: source, SourceID: id}
	}
	return refused
}
