package auth

import (
	"slices"
	"strings"

	"kontor/server/apierr"
	"kontor/store"
)

// KeyLimits restrict an API key.
type KeyLimits struct {
	Scopes  []string    // names of the endpoints that it may call; nil: all that accept a key
	Expires *store.Time // nil: never
}

// allScopes is the scope of a key that may call all endpoints that accept a key.
const allScopes = "*"

// checkLimits returns the limits in their stored form. It returns apierr.InvalidInput for unknown scopes, an empty list of
// scopes, and a time of expiry in the past.
func (s *Service) checkLimits(l KeyLimits) (KeyLimits, error) {
	var problems apierr.Fields
	switch {
	case l.Scopes == nil || slices.Equal(l.Scopes, []string{allScopes}):
		l.Scopes = nil
	case len(l.Scopes) == 0:
		problems.Add("scopes", "invalid.min_items", apierr.Args{"Min": 1})
	default:
		l.Scopes = slices.Compact(slices.Sorted(slices.Values(l.Scopes)))
		for _, scope := range l.Scopes {
			if !slices.Contains(s.Peers.Scopes, scope) {
				problems.Add("scopes", "invalid.one_of", apierr.Args{"Values": strings.Join(s.Peers.Scopes, ", ")})
			}
		}
	}
	if l.Expires != nil && *l.Expires <= s.db.Now() {
		problems.Add("expires_at", "invalid.date_past")
	}
	if !problems.Empty() {
		return l, &apierr.Error{Kind: apierr.InvalidInput, Fields: &problems}
	}
	return l, nil
}

// shownScopes returns the stored scopes of a key as the API shows them.
func shownScopes(stored string) []string {
	if stored == "" {
		return []string{allScopes}
	}
	return strings.Split(stored, ",")
}

// callerScopes returns the scopes of a caller with the key; nil means all.
func callerScopes(stored string) []string {
	if stored == "" {
		return nil
	}
	return strings.Split(stored, ",")
}
