package rbac

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"kontor/modules/kit/list"
	"kontor/modules/kit/records"
	"kontor/server/access"
	"kontor/server/apierr"
	"kontor/server/endpoint"
	"kontor/store"
)

// policyTables are the tables from which a policy is read.
var policyTables = []string{"grants", "endpoint_grants", "rate_limit_rules"}

// policyLoader loads the policy from its tables and puts it in force.
type policyLoader struct {
	db      *store.DB
	current *access.Current
	log     *slog.Logger

	mu      sync.Mutex
	loaded  bool
	version uint64 // table version, taken before reading
}

// load puts the current policy in force. Loads run one at a time, and each takes the table version before it reads. An older
// policy therefore never replaces a newer one. A load does nothing if the tables have not changed since the last one.
func (p *policyLoader) load(ctx context.Context) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	version, err := p.db.Version(ctx, policyTables...)
	if err != nil {
		return fmt.Errorf("load the policy: %w", err)
	}
	if p.loaded && version == p.version {
		return nil
	}
	var policy *access.Policy
	err = p.db.View(ctx, func(v *store.View) error {
		var err error
		policy, err = readPolicy(ctx, v)
		return err
	})
	if err != nil {
		return fmt.Errorf("load the policy: %w", err)
	}
	p.current.Store(policy)
	p.version, p.loaded = version, true
	return nil
}

const (
	loadTries  = 3
	retryAfter = time.Second
)

// reload puts the change of a transaction in force. It runs after the commit and before the change is acknowledged. While
// the tables cannot be read, all callers except administrators are denied: a permission that was just taken away must not
// stay in force.
func (p *policyLoader) reload() {
	var err error
	for range loadTries {
		if err = p.load(context.Background()); err == nil {
			return
		}
	}
	if errors.Is(err, store.ErrClosed) {
		return
	}
	p.log.Error("cannot read grants; all callers except administrators are denied until the next successful try", "cause", err)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.current.Store(access.NewPolicy(access.PolicyData{}))
	p.loaded = false
	time.AfterFunc(retryAfter, p.reload)
}

// readPolicy returns the policy with all grants on types and endpoints and all rate-limit rules.
func readPolicy(ctx context.Context, q store.Querier) (*access.Policy, error) {
	data, err := readGrants(ctx, q, "")
	data.Limits = map[string]int{}
	if err == nil {
		err = store.Each(ctx, q, func(row store.Scanner) error {
			var key string
			var perMinute int
			err := row.Scan(&key, &perMinute)
			data.Limits[key] = perMinute
			return err
		}, selectLimits)
	}
	if err != nil {
		return nil, err
	}
	return access.NewPolicy(data), nil
}

const selectTypeGrants = `SELECT principal_id, rec_type, permission FROM grants WHERE rec_id = ''`

const selectEndpointGrants = `SELECT principal_id, endpoint FROM endpoint_grants WHERE TRUE`

const selectLimits = `SELECT endpoint, per_minute FROM rate_limit_rules`

// ofPrincipals is the condition for the grants of one user and their roles, and for those of Everyone.
const ofPrincipals = ` AND (principal_id = '` + access.Everyone + `' OR principal_id IN (` + records.Principals + `))`

// readGrants returns the grants on types and on endpoints that a condition selects.
func readGrants(ctx context.Context, q store.Querier, condition string, args ...any) (access.PolicyData, error) {
	data := access.PolicyData{Types: map[string]map[string]access.Permission{}, Endpoints: map[string][]string{}}
	err := store.Each(ctx, q, func(row store.Scanner) error {
		var principal, recType, name string
		if err := row.Scan(&principal, &recType, &name); err != nil {
			return err
		}
		permission, ok := access.ParsePermission(name)
		if !ok {
			return fmt.Errorf("grant of %q", name)
		}
		if data.Types[principal] == nil {
			data.Types[principal] = map[string]access.Permission{}
		}
		data.Types[principal][recType] |= permission
		return nil
	}, selectTypeGrants+condition, args...)
	if err != nil {
		return data, err
	}
	return data, store.Each(ctx, q, func(row store.Scanner) error {
		var principal, key string
		err := row.Scan(&principal, &key)
		data.Endpoints[principal] = append(data.Endpoints[principal], key)
		return err
	}, selectEndpointGrants+condition, args...)
}

// RateLimit is a stored rule for the requests that one caller may send to an endpoint. It replaces the general limits.
type RateLimit struct {
	Endpoint   string     `json:"endpoint"`
	PerMinute  *int       `json:"per_minute" doc:"Requests a minute; null in the answer that removed the rule."`
	ModifiedAt store.Time `json:"modified_at"`
	ModifiedBy string     `json:"modified_by"`

	version int64
}

// EachUser names the user who set the rule.
func (r RateLimit) EachUser(add func(id string)) { add(r.ModifiedBy) }

// ETag returns the version of the rule with the time of its change. The version of a rule that was removed and set again
// starts from 1; the time makes the ETag unique.
func (r RateLimit) ETag() string {
	if r.version == 0 {
		return "none"
	}
	return fmt.Sprintf("%d.%d", r.version, r.ModifiedAt)
}

const (
	minPerMinute = 1
	maxPerMinute = 1_000_000
)

// RateLimitInput sets or, with null, removes the rule of an endpoint.
type RateLimitInput struct {
	Endpoint  string                 `json:"endpoint"`
	PerMinute endpoint.Optional[int] `json:"per_minute" minimum:"1" maximum:"1000000" doc:"null removes the rule."`
}

// Validate checks that the endpoint is given and the number is in range.
func (in *RateLimitInput) Validate(v *apierr.Fields) {
	if in.Endpoint == "" {
		v.Add("endpoint", "invalid.required")
	}
	if v.Has("per_minute") || in.PerMinute.Null {
		return
	}
	if !in.PerMinute.Given {
		v.Add("per_minute", "invalid.required")
		return
	}
	if n := in.PerMinute.Value; n < minPerMinute || n > maxPerMinute {
		v.Add("per_minute", "invalid.range", apierr.Args{"Min": minPerMinute, "Max": maxPerMinute})
	}
}

// listRateLimits returns the stored rules. It returns apierr.NoAccess.
func (s *Service) listRateLimits(ctx context.Context, in list.Input) (list.Page[RateLimit], error) {
	if !access.From(ctx).May(access.RateLimits, access.Read) {
		return list.Page[RateLimit]{}, apierr.NoAccess
	}
	return limitList.Page(ctx, s.db, in.Query)
}

func (s *Service) findLimited(ctx context.Context, _ []string, in any) error {
	if !access.From(ctx).May(access.RateLimits, access.Update) {
		return apierr.NoAccess
	}
	return s.checkLimitable(in.(*RateLimitInput).Endpoint)
}

// SetRateLimit sets or removes a rule, in force for the next request. It returns apierr.NoAccess, apierr.EndpointNotFound,
// apierr.InvalidInput for an endpoint without rate limit, and apierr.PreconditionFailed.
func (s *Service) SetRateLimit(ctx context.Context, in RateLimitInput) (RateLimit, error) {
	caller := access.From(ctx)
	if err := s.findLimited(ctx, nil, &in); err != nil {
		return RateLimit{}, err
	}
	var rule RateLimit
	err := s.db.InTx(ctx, func(tx *store.Tx) error {
		before, err := selectLimit(ctx, tx, in.Endpoint)
		if err != nil && !errors.Is(err, store.ErrNotFound) {
			return err
		}
		if err := endpoint.CheckMatch(ctx, before.ETag()); err != nil {
			return err
		}
		rule = RateLimit{Endpoint: in.Endpoint, ModifiedAt: tx.Now(), ModifiedBy: caller.UserID}
		entry := store.AuditEntry{Actor: caller.UserID, Action: "rbac.rate_limits.set", RecType: access.RateLimits.Name, RecID: in.Endpoint}
		if before.PerMinute != nil {
			entry.Before = auditedLimit(before)
		}
		if in.PerMinute.Null {
			if before.PerMinute == nil {
				return nil
			}
			entry.Action = "rbac.rate_limits.remove"
			_, err = tx.Exec(ctx, deleteLimitRow, in.Endpoint)
		} else {
			rule.PerMinute, rule.version = &in.PerMinute.Value, before.version+1
			entry.After = auditedLimit(rule)
			err = upsertLimit(ctx, tx, rule)
		}
		if err != nil {
			return err
		}
		tx.Audit(entry)
		tx.Announce(s.changed, "")
		return nil
	})
	return rule, err
}

const limitColumns = "endpoint, per_minute, modified_at, modified_by, version"

var limitList = list.New(list.Source[RateLimit]{
	From: "rate_limit_rules", Columns: limitColumns, ID: "endpoint", Created: "modified_at",
	Tables: []string{"rate_limit_rules"}, Scan: scanLimit,
	Fields: list.Fields{
		{Name: "endpoint", Type: list.Text, Column: "endpoint"},
		{Name: "per_minute", Type: list.Number, Column: "per_minute"},
		{Name: "modified_at", Type: list.Time, Column: "modified_at"},
		{Name: "modified_by", Type: list.UUID, Column: "modified_by"},
	},
})

func scanLimit(row list.Row) (RateLimit, error) {
	var r RateLimit
	err := row.Scan(&r.Endpoint, &r.PerMinute, &r.ModifiedAt, &r.ModifiedBy, &r.version)
	return r, err
}

const selectLimitOf = "SELECT " + limitColumns + " FROM rate_limit_rules WHERE endpoint = $1"

func selectLimit(ctx context.Context, q store.Querier, key string) (RateLimit, error) {
	return scanLimit(q.QueryRow(ctx, selectLimitOf, key))
}

const upsertLimitRow = `
	INSERT INTO rate_limit_rules (endpoint, per_minute, modified_at, modified_by, version)
	VALUES ($1, $2, $3, $4, $5)
	ON CONFLICT (endpoint) DO UPDATE SET per_minute = excluded.per_minute, modified_at = excluded.modified_at,
		modified_by = excluded.modified_by, version = excluded.version`

func upsertLimit(ctx context.Context, tx *store.Tx, r RateLimit) error {
	return tx.Run(ctx, upsertLimitRow, r.Endpoint, *r.PerMinute, r.ModifiedAt, r.ModifiedBy, r.version)
}

const deleteLimitRow = `DELETE FROM rate_limit_rules WHERE endpoint = $1`
