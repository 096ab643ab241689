package serviceaccounts

import (
	"net/netip"
	"strings"
)

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
