package outbound

import "net/netip"

// special are the addresses that are not those of receivers on the internet: the registries of special-purpose addresses of IANA
// (RFC 6890), and metadata services of clouds at public addresses.
var special = prefixes(
	"0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12", "192.0.0.0/24", "192.0.2.0/24",
	"192.31.196.0/24", "192.52.193.0/24", "192.88.99.0/24", "192.168.0.0/16", "192.175.48.0/24", "198.18.0.0/15", "198.51.100.0/24",
	"203.0.113.0/24", "224.0.0.0/4", "240.0.0.0/4",
	"168.63.129.16/32", // the platform's own service on virtual machines of Azure
	"2001::/23", "2001:db8::/32", "2002::/16", "2620:4f:8000::/48", "3fff::/20",
)

// unicast are the addresses of IPv6 that are in use on the internet. Everything else is refused: loopback, link-local and unique
// local addresses, and those that contain one of IPv4 (mapped, compatible, NAT64).
var unicast = netip.MustParsePrefix("2000::/3")

func prefixes(texts ...string) []netip.Prefix {
	list := make([]netip.Prefix, len(texts))
	for i, text := range texts {
		list[i] = netip.MustParsePrefix(text)
	}
	return list
}

// Public reports whether an address is one of a receiver on the internet.
func Public(a netip.Addr) bool {
	if a.Zone() != "" {
		return false
	}
	a = a.Unmap() // the system connects to the address of IPv4
	if !a.IsValid() || a.Is6() && !unicast.Contains(a) {
		return false
	}
	return !within(special, a)
}

// within reports whether one of the prefixes contains an address, also in its form as an address of IPv6.
func within(prefixes []netip.Prefix, a netip.Addr) bool {
	a = a.Unmap().WithZone("")
	for _, p := range prefixes {
		if p.Contains(a) {
			return true
		}
	}
	return false
}
