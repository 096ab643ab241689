package settings

import (
	"errors"
	"net"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
)

// triggerMode accepts auto and the values of a switch. The setting was a switch in earlier versions.
var triggerMode = func() kind[string] {
	k := text("auto, true or false", func(raw string) (string, error) {
		if strings.EqualFold(raw, TriggerAuto) {
			return TriggerAuto, nil
		}
		on, err := toggle.parse(raw)
		if err != nil {
			return "", errors.New("must be auto, true or false")
		}
		return strconv.FormatBool(on), nil
	})
	k.json = func(mode string) any {
		if mode == TriggerAuto {
			return mode
		}
		return mode == TriggerOn
	}
	k.choices, k.isSwitch = []string{TriggerAuto, TriggerOn, TriggerOff}, true
	return k
}()

// TriggerEnabled reports whether the endpoint for test notifications exists. TriggerAuto disables it if other machines may reach
// the service: if it listens on an address other than loopback, has a trusted proxy, or has a base URL of another machine.
func (s *Settings) TriggerEnabled() bool {
	switch s.Notifications.Trigger.Enabled {
	case TriggerOn:
		return true
	case TriggerOff:
		return false
	}
	host, _, err := net.SplitHostPort(s.Server.Listen)
	if err != nil || !loopback(host) || len(s.Server.Domain) > 0 || len(s.Server.TrustedProxies) > 0 {
		return false
	}
	if s.Server.BaseURL == "" {
		return true
	}
	base, err := url.Parse(s.Server.BaseURL)
	return err == nil && loopback(base.Hostname())
}

// loopback reports whether only this machine can reach a host.
func loopback(host string) bool {
	if strings.EqualFold(host, "localhost") {
		return true
	}
	address, err := netip.ParseAddr(host)
	return err == nil && address.Unmap().IsLoopback()
}
