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

// policyTables are those that a policy is made of.
var policyTables = []string{"grants", "endpoint_grants", "rate_limit_rules"}

// snapshot loads the policy from its tables and puts it in force.
type policyLoader struct {
	db      *store.DB
	current *access.Current
	log     *slog.Logger

	mu      sync.Mutex
	loaded  bool
	version uint64 // of the tables, taken before they were read
}

// load puts the policy of now in force. Loads run one after another, and each takes the version before it reads, so
// that an older policy never replaces a newer one; a load that another one has made unnecessary does nothing.
func (p *policyLoader) load(ctx context.Context) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	version := p.db.Version(policyTables...)
	if p.loaded && version == p.version {
		return nil
	}
	var policy *access.Policy
	err := p.db.View(ctx, func(v *store.View) error {
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

// changed puts what a transaction has changed in force. It runs after the commit and before the change is
// acknowledged. When the tables cannot be read, nobody but administrators may do anything until they can: a right that
// was just taken away must not live on.
func (p *policyLoader) changed() {
	var err error
	for range loadTries {
		if err = p.load(context.Background()); err == nil {
			return
		}
	}
	if errors.Is(err, store.ErrClosed) {
		return
	}
	p.log.Error("grants cannot be read; everything is refused until they can", "cause", err)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.current.Store(access.NewPolicy(access.PolicyData{}))
	p.loaded = false
	time.AfterFunc(retryAfter, p.changed)
}

// readPolicy makes a policy of all grants on types and endpoints and of all rate-limit rules.
func readPolicy(ctx context.Context, q store.Querier) (*access.Policy, error) {
	data := access.PolicyData{
		Types: map[string]map[string]access.Permission{}, Endpoints: map[string][]string{}, Limits: map[string]int{},
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
