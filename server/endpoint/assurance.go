package endpoint

import (
	"context"
	"time"

	"kontor/server/access"
	"kontor/server/apierr"
)

// FreshFor is the time after an authentication in which a session may do what needs a recent one. Refreshing a token does not
// extend it: a stolen token must not be enough to take over an account or to pass on rights.
const FreshFor = 10 * time.Minute

type assuranceLevel uint8

const (
	levelAny assuranceLevel = iota
	levelFresh
	levelSecondFactor
)

// Assurance declares how recently the caller of an endpoint must have authenticated. The zero Assurance accepts any session.
type Assurance struct {
	level assuranceLevel
	when  string
}

// The assurances.
var (
	// AnySession accepts every active session.
	AnySession = Assurance{}
	// Fresh requires an authentication by any factor within [FreshFor].
	Fresh = Assurance{level: levelFresh}
	// SecondFactor requires a fresh session, and of users with a second factor that they have shown one within [FreshFor].
	SecondFactor = Assurance{level: levelSecondFactor}
)

// When returns an assurance that only some requests need, with the condition in words. The service behind the row must call
// [RequireAssurance] for these requests.
func (a Assurance) When(condition string) Assurance {
	a.when = condition
	return a
}

// Condition returns the condition in words; empty: every request needs the assurance.
func (a Assurance) Condition() string { return a.when }

// Level returns the name of the level: any, fresh or second_factor.
func (a Assurance) Level() string {
	switch a.level {
	case levelFresh:
		return "fresh"
	case levelSecondFactor:
		return "second_factor"
	default:
		return "any"
	}
}

// String returns the level and the condition.
func (a Assurance) String() string {
	if a.when == "" {
		return a.Level()
	}
	return a.Level() + " when " + a.when
}

// Check returns apierr.StaleSession if an authentication does not have the level at the time now, and apierr.PersonRequired for a
// service account: no token of a program proves that a person is present.
func (a Assurance) Check(s access.Authentication, now time.Time) error {
	switch {
	case a.level != levelAny && s.Machine:
		return apierr.PersonRequired
	case a.level == levelAny, a.level == levelFresh && s.Fresh(now, FreshFor), a.level == levelSecondFactor && s.FactorFresh(now, FreshFor):
		return nil
	}
	stale := apierr.StaleSession.Detail("max_age", int(FreshFor/time.Second))
	if a.level == levelSecondFactor && s.HasFactor {
		stale = stale.Detail("acr_values", []string{access.TwoFactors})
	}
	return stale
}

// RequireAssurance returns apierr.StaleSession unless the session of the request has the assurance. It is for rows with a
// condition; the server checks all others. It reads no database.
func RequireAssurance(ctx context.Context, a Assurance) error {
	return a.Check(access.From(ctx).SignedIn, Of(ctx).Now)
}
