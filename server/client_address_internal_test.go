package server

import (
	"net/netip"
	"strings"
	"testing"
)

func TestForwardedAddress(t *testing.T) {
	for element, want := range map[string]string{
		"203.0.113.7": "203.0.113.7", " 203.0.113.7\t": "203.0.113.7", "203.0.113.7:51234": "203.0.113.7", `"203.0.113.7:80"`: "203.0.113.7",
		"2001:db8::1": "2001:db8::1", "[2001:db8::1]": "2001:db8::1", "[2001:db8::1]:443": "2001:db8::1", `"[2001:db8::1]:443"`: "2001:db8::1",
		"::ffff:203.0.113.7": "203.0.113.7", "[::ffff:203.0.113.7]:1": "203.0.113.7", "::ffff:127.0.0.1": "127.0.0.1",
		"": "", " ": "", "unknown": "", "_hidden": "", "localhost": "", "127.0.0.1:": "", ":80": "", "127.1": "", "0x7f000001": "", "2130706433": "",
		"[127.0.0.1]": "", "127.0.0.1:port": "", "127.0.0.1:99999": "", "fe80::1%eth0": "", "[::1": "", "::1]": "", `"127.0.0.1`: "", "0.0.0.0": "", "::": "",
		"for=203.0.113.7": "", "127.0.0.1 127.0.0.1": "", "127.0.0.1\x00": "", "010.0.0.1": "",
	} {
		got, ok := forwardedAddress(element)
		if want == "" && (ok || got.IsValid()) || want != "" && got.String() != want {
			t.Errorf("%q: got %v, %t, want %q", element, got, ok, want)
		}
	}
}

func FuzzForwardedAddress(f *testing.F) {
	for _, seed := range []string{"203.0.113.7:51234", "[2001:db8::1]:443", `"unknown"`, "::ffff:127.0.0.1", "fe80::1%lo"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, element string) {
		address, ok := forwardedAddress(element)
		if ok != address.IsValid() || address.Is4In6() || address.Zone() != "" || address.IsUnspecified() {
			t.Fatalf("%q: %v, %t", element, address, ok)
		}
		if !ok {
			return
		}
		if again, ok := forwardedAddress(address.String()); !ok || again != address {
			t.Fatalf("%q: %v reads as %v", element, address, again)
		}
		if !strings.ContainsAny(element, ".:") || address == (netip.Addr{}) {
			t.Fatalf("%q is no address and was read as %v", element, address)
		}
	})
}
