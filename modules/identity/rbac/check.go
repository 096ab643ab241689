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

// The sources of a permission.
const (
	sourceOwner = "owner"
	sourceUser  = "user"
	sourceRole  = "role"
)

var denied = access.Decision{SourceID: store.NilID}

// maxChecks is how many checks are decided at once.
const maxChecks = 1000

type checksInput struct {
	Checks []access.Check `json:"checks" required:"true" maxItems:"1000"`
	UserID string         `json:"user_id" doc:"Check for this user instead of the caller; only for administrators."`
}

// Validate requires checks and normalizes ids.
func (in *checksInput) Validate(v *apierr.Fields) {
	if in.Checks == nil {
		v.Add("checks", "invalid.required")
	}
	for i := range in.Checks {
		id := &in.Checks[i].RecID
		if parsed, err := types.ParseID(*id); err == nil {
			*id = parsed
		} else if *id != "" {
			v.Add("checks."+strconv.Itoa(i)+".rec_id", "invalid.uuid")
		}
	}
	canonicalID(v, "user_id", &in.UserID)
}

type checkOutput struct {
	Results []access.Decision `json:"results"`
}

// EachUser names the users whose grants allow a permission.
func (out checkOutput) EachUser(add func(id string)) {
	for _, d := range out.Results {
		if d.Source == sourceUser {
			add(d.SourceID)
		}
	}
}

// check decides for the caller or, if an administrator asks, for another user.
func (s *Service) check(ctx context.Context, in checksInput) (checkOutput, error) {
	caller := access.From(ctx)
	asking := caller
	if in.UserID != "" && in.UserID != caller.UserID {
		if !caller.Administrator() {
			return checkOutput{}, apierr.NoAccess
		}
		if err := s.requireUser(ctx, in.UserID); err != nil {
			return checkOutput{}, err
		}
		roles, err := s.Users.RolesOf(ctx, s.db, in.UserID)
		if err != nil {
			return checkOutput{}, err
		}
		caller = access.Caller{UserID: in.UserID, Roles: roles}.WithPolicy(s.Policy.Load())
	}
	results, err := s.Decide(ctx, caller, in.Checks)
	for i, c := range in.Checks {
		if err == nil && results[i].Missing && !s.learnsExistence(asking, c.RecType) {
			results[i] = onType(caller, c)
		}
	}
	return checkOutput{results}, err
}

// learnsExistence reports whether a caller could learn from the address of a record whether there is one: they may call the endpoint, which
// answers 404 or 403, or they may read all records of the type. The address of a notification does not tell it apart from one of another
// user, and that of a task needs the id of its customer, too.
func (s *Service) learnsExistence(caller *access.Caller, recType string) bool {
	t, _ := access.LookupType(recType)
	readers := s.readers[recType]
	all := caller.May(t, access.ReadAll)
	if all && len(readers) == 0 {
		return true
	}
	return slices.ContainsFunc(readers, func(r reader) bool {
		tells := all || r.alone && t != access.Notifications
		return tells && caller.MayCall(r.key) && caller.InScope(r.name)
	})
}

// onType decides a check of a record as for the type: the answer is the same for all records without a relation or a grant of their own.
func onType(caller *access.Caller, c access.Check) access.Decision {
	c.RecID = ""
	known := facts{caller: caller}
	return known.decide(parseCheck(c))
}

// parsedCheck is a check with its names looked up.
type parsedCheck struct {
	recordType access.RecordType
	permission access.Permission
	recID      string
	valid      bool // type and permission exist
}

func parseCheck(c access.Check) parsedCheck {
	t, typeKnown := access.LookupType(c.RecType)
	permission, permissionKnown := access.ParsePermission(c.Permission)
	q := parsedCheck{recordType: t, permission: permission, recID: c.RecID, valid: typeKnown && permissionKnown}
	if q.recID == store.NilID {
		q.recID = ""
	}
	return q
}

// Decide answers checks for a caller, in their order. It denies unknown types, permissions and records. It runs one query for
// each record type and one for all grants on records.
func (s *Service) Decide(ctx context.Context, caller *access.Caller, checks []access.Check) ([]access.Decision, error) {
	parsed := make([]parsedCheck, len(checks))
	byType := make([][]string, len(access.RecordTypes()))
	var all []string
	for i, c := range checks {
		q := parseCheck(c)
		parsed[i] = q
		if q.valid && q.recID != "" {
			byType[q.recordType.Index()] = append(byType[q.recordType.Index()], q.recID)
			all = append(all, q.recID)
		}
	}
	known := facts{caller: caller, relations: make([]map[string]access.Permission, len(byType))}
	for _, t := range access.RecordTypes() {
		ids := byType[t.Index()]
		records := s.recordsOf(t)
		if len(ids) == 0 || records == nil {
			continue
		}
		var err error
		if known.relations[t.Index()], err = records.Relations(ctx, caller.UserID, unique(ids)); err != nil {
			return nil, fmt.Errorf("relations to %s: %w", t, err)
		}
	}
	var err error
	if known.grants, err = recordGrants(ctx, s.db, caller, unique(all)); err != nil {
		return nil, fmt.Errorf("grants on records: %w", err)
	}
	decisions := make([]access.Decision, len(parsed))
	for i, q := range parsed {
		c := checks[i]
		if c.Endpoint != "" {
			decisions[i] = s.onEndpoint(caller, c.Endpoint)
			alone := access.Check{Endpoint: c.Endpoint}
			if c == alone || !decisions[i].Allowed {
				continue
			}
		}
		decisions[i] = known.decide(q)
	}
	return decisions, nil
}

// onEndpoint decides whether a caller may call an endpoint of this process.
func (s *Service) onEndpoint(caller *access.Caller, key string) access.Decision {
	e, known := s.endpoints[key]
	if !known || !caller.InScope(e.Name) {
		return denied
	}
	if source, id, ok := caller.EndpointSource(key); ok {
		return access.Decision{Allowed: true, Source: source, SourceID: id}
	}
	return access.Decision{Allowed: e.Access == access.Public.String() || e.Access == access.APIKey.String(), SourceID: store.NilID}
}

// unique sorts ids and removes duplicates.
func unique(ids []string) []string {
	slices.Sort(ids)
	return slices.Compact(ids)
}

// facts holds the relations and grants that decide the checks of one request.
type facts struct {
	caller    *access.Caller
	relations []map[string]access.Permission // by record type
	grants    map[recordPermission]grantHolders
}

// recordPermission is a permission on a record.
type recordPermission struct {
	recID, recType string
	permission     access.Permission
}

// grantHolders reports which principals of a caller hold a permission by a grant on the record.
type grantHolders struct {
	user bool
	role string // the first in the caller's order; empty for none
}

// with returns the holders with a further principal of the caller.
func (h grantHolders) with(caller *access.Caller, principal string) grantHolders {
	if principal == caller.UserID {
		h.user = true
	} else if h.role == "" || slices.Index(caller.Roles, principal) < slices.Index(caller.Roles, h.role) {
		h.role = principal
	}
	return h
}

func (k *facts) decide(q parsedCheck) access.Decision {
	if !q.valid {
		return denied
	}
	if q.recID != "" {
		allowed, exists := k.relations[q.recordType.Index()][q.recID]
		if !exists {
			return access.Decision{SourceID: store.NilID, Missing: true} // also for types without records
		}
		if allowed.Has(q.permission) {
			return access.Decision{Allowed: true, Source: sourceOwner, SourceID: q.recID}
		}
		held := k.grants[recordPermission{q.recID, q.recordType.Name, q.permission}]
		if held.user {
			return access.Decision{Allowed: true, Source: sourceUser, SourceID: k.caller.UserID}
		}
		if held.role != "" {
			return access.Decision{Allowed: true, Source: sourceRole, SourceID: held.role}
		}
	}
	if source, id, ok := k.caller.Source(q.recordType, q.permission); ok {
		return access.Decision{Allowed: true, Source: source, SourceID: id}
	}
	return denied
}

// recordGrants reads the grants that the caller and their roles have on the records.
func recordGrants(ctx context.Context, q store.Querier, caller *access.Caller, ids []string) (map[recordPermission]grantHolders, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	found := map[recordPermission]grantHolders{}
	principals := principalsOf(caller)
	args := store.AppendIn(make([]any, 0, 2*(len(ids)+len(principals))), ids)
	asking := store.In(len(args)+1, len(principals))
	args = store.AppendIn(args, principals)
	// Nothing is added to the principal's id. The concatenation keeps the database from searching all grants of a
	// principal instead of those on a few records.
	statement := "SELECT principal_id, rec_type, permission, rec_id FROM grants WHERE rec_id IN (" + store.In(1, len(ids)) +
		") AND principal_id || '' IN (" + asking + ")"
	err := store.Each(ctx, q, func(rows store.Scanner) error {
		var right recordPermission
		var principal, name string
		if err := rows.Scan(&principal, &right.recType, &name, &right.recID); err != nil {
			return err
		}
		right.permission, _ = access.ParsePermission(name)
		found[right] = found[right].with(caller, principal)
		return nil
	}, statement, args...)
	return found, err
}
