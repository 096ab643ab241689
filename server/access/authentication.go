package access

import "time"

// The assurance levels of a session, named as in NIST SP 800-63B.
const (
	OneFactor  = "aal1"
	TwoFactors = "aal2"
)

// Authentication describes how the session of a caller was authenticated.
type Authentication struct {
	At        time.Time // the latest authentication by any factor
	FactorAt  time.Time // the latest verification of a second factor or a passkey; zero: never
	ACR       string    // OneFactor or TwoFactors
	HasFactor bool      // the user has an active second factor
	Machine   bool      // the caller is a service account, which cannot authenticate again
	EnrolBy   time.Time // by when the user must enrol a second factor; zero: they need not
}

// clockLeeway is the tolerance for a clock that was set back.
const clockLeeway = 5 * time.Second

// Fresh reports whether the session was authenticated within a time before now.
func (a Authentication) Fresh(now time.Time, within time.Duration) bool {
	return recent(a.At, now, within)
}

// FactorFresh reports whether the session is fresh, and whether a user with a second factor has shown one within a time before
// now.
func (a Authentication) FactorFresh(now time.Time, within time.Duration) bool {
	return a.Fresh(now, within) && (!a.HasFactor || recent(a.FactorAt, now, within))
}

// MustEnrol reports whether the user may do nothing before they enrol a second factor.
func (a Authentication) MustEnrol(now time.Time) bool {
	return !a.HasFactor && !a.EnrolBy.IsZero() && !now.Before(a.EnrolBy)
}

// recent reports whether a time lies within a duration before now. A time in the future does not: otherwise a session would stay
// fresh for as long as the clock was set back.
func recent(at, now time.Time, within time.Duration) bool {
	return !at.After(now.Add(clockLeeway)) && now.Before(at.Add(within))
}
