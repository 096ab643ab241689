package rbac

import (
	"context"
	"errors"
	"fmt"

	"kontor/modules/kit/list"
	"kontor/server/access"
	"kontor/server/apierr"
	"kontor/server/endpoint"
	"kontor/store"
)

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

// RateLimits returns the stored rules. It returns apierr.NoAccess.
func (s *Service) RateLimits(ctx context.Context, p list.Params) (list.Page[RateLimit], error) {
	if !access.From(ctx).May(access.RateLimits, access.Read) {
		return list.Page[RateLimit]{}, apierr.NoAccess
	}
	return limitList.Page(ctx, s.db, p)
}

// SetRateLimit sets or removes a rule, in force for the next request. It returns apierr.NoAccess, apierr.EndpointNotFound,
// apierr.InvalidInput for an endpoint without rate limit, and apierr.PreconditionFailed.
func (s *Service) SetRateLimit(ctx context.Context, in RateLimitInput) (RateLimit, error) {
	caller := access.From(ctx)
	if !caller.May(access.RateLimits, access.Update) {
		return RateLimit{}, apierr.NoAccess
	}
	if err := s.checkLimitable(in.Endpoint); err != nil {
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
			err = deleteLimit(ctx, tx, in.Endpoint)
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
