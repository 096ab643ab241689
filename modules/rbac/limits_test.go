package rbac_test

import (
	"net/url"
	"strings"
	"testing"

	"kontor/server/access"
)

// escape encodes the value of a query parameter for a URL.
func escape(parameter string) string {
	name, value, _ := strings.Cut(parameter, "=")
	return name + "=" + url.QueryEscape(value)
}

func TestSetRateLimit_IsInForceForTheNextRequest(t *testing.T) {
	b := newBank(t)
	user, thing := b.user(access.Advisor), b.thing(b.root)
	path, key := "/v1/customers/"+thing, "GET /v1/customers/{id}"
	if got := b.want(200, "", user, "GET", path, nil).header.Get("RateLimit-Limit"); got != "1000000" {
		t.Errorf("limit is %s", got)
	}
	set := b.want(200, "", b.root, "PUT", "/v1/rate-limits", object{"endpoint": key, "per_minute": 3})
	if set.body["per_minute"] != 3.0 || set.body["endpoint"] != key || set.header.Get("ETag") == "" {
		t.Errorf("rule is %s", set.text)
	}
	other := b.user(access.Advisor)
	for range 3 {
		b.want(200, "", other, "GET", path, nil)
	}
	throttled := b.want(429, "rate_limits_m.exceeded", other, "GET", path, nil)
	if throttled.header.Get("Retry-After") == "" || throttled.header.Get("RateLimit-Limit") != "3" {
		t.Errorf("headers are %v", throttled.header)
	}
	if listed := b.do(b.root, "GET", "/v1/rate-limits", nil).data(); len(listed) != 1 || listed[0]["per_minute"] != 3.0 {
		t.Errorf("listed are %v", listed)
	}
	b.want(412, "common.precondition_failed", b.root, "PUT", "/v1/rate-limits", object{"endpoint": key, "per_minute": 4}, "If-Match", `"9"`)
	removed := b.want(200, "", b.root, "PUT", "/v1/rate-limits", object{"endpoint": key, "per_minute": nil}, "If-Match", set.header.Get("ETag"))
	if value, present := removed.body["per_minute"]; value != nil || !present {
		t.Errorf("removal answers %s", removed.text)
	}
	b.want(200, "", b.user(access.Advisor), "GET", path, nil)
	b.want(200, "", b.root, "PUT", "/v1/rate-limits", object{"endpoint": key, "per_minute": nil})
	if listed := b.do(b.root, "GET", "/v1/rate-limits", nil).data(); len(listed) != 0 {
		t.Errorf("remaining rules: %v", listed)
	}
}

func TestSetRateLimit_RejectsInvalidInput(t *testing.T) {
	b := newBank(t)
	key := "GET /v1/customers/{id}"
	for _, body := range []object{
		{}, {"endpoint": key}, {"per_minute": 5}, {"endpoint": key, "per_minute": 0}, {"endpoint": key, "per_minute": 1_000_001},
		{"endpoint": key, "per_minute": "5"}, {"endpoint": key, "per_minute": 1.5}, {"endpoint": "GET /v1/health", "per_minute": 5},
	} {
		b.want(400, "common.invalid_input", b.root, "PUT", "/v1/rate-limits", body)
	}
	b.want(404, "rbac.endpoint_not_found", b.root, "PUT", "/v1/rate-limits", object{"endpoint": "GET /v1/dragons", "per_minute": 5})
	b.want(200, "", b.root, "PUT", "/v1/rate-limits", object{"endpoint": key, "per_minute": 1})
	b.want(200, "", b.root, "PUT", "/v1/rate-limits", object{"endpoint": key, "per_minute": 1_000_000})
}
