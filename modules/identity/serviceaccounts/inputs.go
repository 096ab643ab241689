package serviceaccounts

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"kontor/modules/kit/validate"
	"kontor/server/apierr"
	"kontor/store"
)

const (
	maxName        = 100
	maxDescription = 500
	maxRoles       = 20
	maxScopes      = 200
	maxNetworks    = 20
)

// CreateInput describes a new account.
type CreateInput struct {
	Name        string   `json:"name" maxLength:"100" example:"Back office"`
	Description string   `json:"description" required:"false" maxLength:"500" example:"Reads customers every night."`
	Roles       []string `json:"roles" required:"false" maxItems:"20" example:"Advisor" doc:"Names or ids of roles. Without roles, the account may do what it is granted later."`
}

// Validate checks name and description.
func (in *CreateInput) Validate(v *apierr.Fields) {
	in.Name = validate.Required(v, "name", in.Name, maxName)
	in.Description = validate.Text(v, "description", in.Description, maxDescription)
	if len(in.Roles) > maxRoles {
		v.Add("roles", "invalid.max_items", apierr.Args{"Max": maxRoles})
	}
}

// UpdateInput changes an account. Missing members stay as they are.
type UpdateInput struct {
	ID          string  `path:"id"`
	Name        *string `json:"name" maxLength:"100" example:"Back office"`
	Description *string `json:"description" maxLength:"500"`
	Status      *string `json:"status" enum:"active,disabled"`
}

// Validate checks the given members.
func (in *UpdateInput) Validate(v *apierr.Fields) {
	if in.Name != nil {
		*in.Name = validate.Required(v, "name", *in.Name, maxName)
	}
	if in.Description != nil {
		*in.Description = validate.Text(v, "description", *in.Description, maxDescription)
	}
	if in.Status != nil {
		validate.OneOf(v, "status", *in.Status, active, disabled)
	}
}

// TokenInput describes a new token.
type TokenInput struct {
	AccountID string      `path:"id"`
	Name      string      `json:"name" maxLength:"100" example:"Production"`
	Scopes    []string    `json:"scopes" required:"false" maxItems:"200" example:"customers.list" doc:"Names of the endpoints that the token may call. Without scopes, or with *, it may call all that its account may call."`
	Networks  []string    `json:"networks" required:"false" maxItems:"20" example:"192.0.2.0/24" doc:"Networks or addresses from which the token is accepted. Without networks, from everywhere."`
	Expires   *store.Time `json:"expires_at" doc:"When the token expires: at most 400 days from now; without it, in 90 days."`

	networks []string // in their stored form
}

// Validate checks name, scopes and networks.
func (in *TokenInput) Validate(v *apierr.Fields) {
	in.Name = validate.Required(v, "name", in.Name, maxName)
	switch {
	case in.Scopes == nil:
	case len(in.Scopes) == 0: // would look like a token for nothing, and be one for everything
		v.Add("scopes", "invalid.min_items", apierr.Args{"Min": 1})
	case len(in.Scopes) > maxScopes:
		v.Add("scopes", "invalid.max_items", apierr.Args{"Max": maxScopes})
	case len(in.Scopes) > 1 && slices.Contains(in.Scopes, allScopes):
		v.Add("scopes", "invalid.scope", apierr.Args{"Scope": allScopes})
	}
	in.networks = []string{}
	switch {
	case in.Networks != nil && len(in.Networks) == 0:
		v.Add("networks", "invalid.min_items", apierr.Args{"Min": 1})
	case len(in.Networks) > maxNetworks:
		v.Add("networks", "invalid.max_items", apierr.Args{"Max": maxNetworks})
		return
	}
	for i, text := range in.Networks {
		network, ok := parseNetwork(strings.TrimSpace(text))
		if !ok {
			v.Add(fmt.Sprintf("networks.%d", i), "invalid.network")
		}
		if stored := network.String(); !slices.Contains(in.networks, stored) {
			in.networks = append(in.networks, stored)
		}
	}
}

// scopes returns the stored form of the scopes: empty for all.
func (in *TokenInput) scopes() string {
	if in.Scopes == nil || slices.Equal(in.Scopes, []string{allScopes}) {
		return ""
	}
	return strings.Join(slices.Compact(slices.Sorted(slices.Values(in.Scopes))), ",")
}

// parseNetwork parses a network as 192.0.2.0/24 or 2001:db8::/32, or a single address. Bits after the prefix must be zero, and
// a prefix of length 0 is rejected: it restricts nothing, and most likely is a mistake.
func parseNetwork(text string) (netip.Prefix, bool) {
	if !strings.Contains(text, "/") {
		address, err := netip.ParseAddr(text)
		if err != nil || address.Zone() != "" || address.Is4In6() {
			return netip.Prefix{}, false
		}
		return netip.PrefixFrom(address, address.BitLen()), true
	}
	prefix, err := netip.ParsePrefix(text)
	if err != nil || prefix.Bits() == 0 || prefix.Addr().Is4In6() || prefix != prefix.Masked() {
		return netip.Prefix{}, false
	}
	return prefix, true
}

// storedNetworks returns the networks of a row.
func storedNetworks(stored string) []netip.Prefix {
	var networks []netip.Prefix
	for text := range strings.SplitSeq(stored, ",") {
		if prefix, err := netip.ParsePrefix(text); err == nil {
			networks = append(networks, prefix)
		}
	}
	return networks
}

// allows reports whether a token may be used from an address. An unknown address belongs to no network. restricted is true for a
// token with networks, also if none of them can be parsed.
func allows(restricted bool, networks []netip.Prefix, from netip.Addr) bool {
	if !restricted {
		return true
	}
	from = from.Unmap()
	for _, network := range networks {
		if network.Contains(from) {
			return true
		}
	}
	return false
}
