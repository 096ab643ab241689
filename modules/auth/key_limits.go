package auth

import (
	"slices"
	"strings"

	"kontor/server/apierr"
	"kontor/store"
)

// KeyLimits are what bounds an API key beside its revocation.
type KeyLimits struct {
	Scopes  []string    // names of the endpoints that it may call; nil: all that take a key
	Expires *store.Time // nil: never
}

// allScopes is how a key without limits is listed, and may be asked for.
const allScopes = "*"

// SetScopes registers the names of all endpoints that take an API key. Call it before the first request.
func (s *Service) SetScopes(names []string) { s.scopes = names }

// checkLimits brings the scopes into the form that is stored. It returns apierr.InvalidInput for an unknown scope, none
// at all, and a time of expiry that has passed.
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
			if !slices.Contains(s.scopes, scope) {
				problems.Add("scopes", "invalid.one_of", apierr.Args{"Values": strings.Join(s.scopes, ", ")})
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

// shownScopes returns the scopes of a key as they are listed, made of what is stored.
func shownScopes(stored string) []string {
	if stored == "" {
		return []string{allScopes}
	}
	return strings.Split(stored, ",")
}

// callerScopes returns what a caller with the key is held to; nil for all.
func callerScopes(stored string) []string {
	if stored == "" {
		return nil
	}
	return strings.Split(stored, ",")
}
