package rbac

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"kontor/server/access"
	"kontor/store"
)

// policyTables are the tables from which a policy is read.
var policyTables = []string{"grants", "endpoint_grants", "rate_limit_rules"}

// policyLoader loads the policy from its tables and puts it in force.
type policyLoader struct {
	db      *store.DB
	current *access.Current
	log     *slog.Logger
	own     []string // endpoints that need no grant; set by Start

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
		policy, err = readPolicy(ctx, v, p.own)
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
func readPolicy(ctx context.Context, q store.Querier, own []string) (*access.Policy, error) {
	data := access.PolicyData{
		Types: map[string]map[string]access.Permission{}, Endpoints: map[string][]string{}, Own: own, Limits: map[string]int{},
	}
	err := readTypeGrants(ctx, q, data.Types, selectTypeGrants)
	if err == nil {
		err = readEndpointGrants(ctx, q, data.Endpoints, selectEndpointGrants)
	}
	if err == nil {
		err = readLimits(ctx, q, data.Limits)
	}
	if err != nil {
		return nil, err
	}
	return access.NewPolicy(data), nil
}
