package endpoint_test

import (
	"context"
	"net/netip"
	"testing"

	"kontor/server/endpoint"
)

func TestAuditNetwork_NamesNoHousehold(t *testing.T) {
	for address, want := range map[string]string{
		"198.51.100.77":                 "198.51.100.0/24",
		"::ffff:198.51.100.77":          "198.51.100.0/24",
		"2001:db8:1234:5678::1":         "2001:db8:1234::/48",
		"fe80::1%eth0":                  "fe80::/48",
		"127.0.0.1":                     "127.0.0.0/24",
		"2001:db8:1234:ffff:1:2:3:4444": "2001:db8:1234::/48",
	} {
		if got := endpoint.AuditNetwork(netip.MustParseAddr(address)); got != want {
			t.Errorf("%s: got %s, want %s", address, got, want)
		}
	}
	if got := endpoint.AuditNetwork(netip.Addr{}); got != "" {
		t.Errorf("no address: got %s", got)
	}
}

// Outside a request there is no receiver for events, and none may be stored.
func TestReport_OutsideARequestKeepsNothing(t *testing.T) {
	endpoint.Report(context.Background(), endpoint.Event{Action: "x"})
	if n := len(endpoint.Of(context.Background()).Events()); n != 0 {
		t.Errorf("%d events are kept", n)
	}
	request := &endpoint.Info{}
	endpoint.Report(endpoint.With(context.Background(), request), endpoint.Event{Action: "x"})
	if n := len(request.Events()); n != 1 {
		t.Errorf("%d events were reported", n)
	}
}
