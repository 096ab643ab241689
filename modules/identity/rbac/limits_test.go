package rbac_test

import (
	"errors"
	"net/url"
	"strings"
	"testing"

	"kontor/modules/identity/rbac"
	"kontor/server/access"
	"kontor/server/apierr"
	"kontor/server/ratelimit"
)

// escape encodes the value of a query parameter for a URL.
func escape(parameter string) string {
	name, value, _ := strings.Cut(parameter, "=")
	return name + "=" + url.QueryEscape(value)
}

func TestSetRateLimit_IsInForceForTheNextRequest(t *testing.T) {
	h := newHarness(t)
	user, persona := h.user(access.Advisor), h.persona(h.root)
	path, key := "/v1/personas/"+persona, "GET /v1/personas/{persona_id}"
	if got := h.want(200, "", user, "GET", path, nil).header.Get("RateLimit-Limit"); got != "1000000" {
		t.Errorf("limit is %s", got)
	}
	set := h.want(200, "", h.root, "PUT", "/v1/rate-limits", object{"endpoint": key, "per_minute": 3})
	if set.body["per_minute"] != 3.0 || set.body["endpoint"] != key || set.header.Get("ETag") == "" {
		t.Errorf("rule is %s", set.text)
	}
	other := h.user(access.Advisor)
	for range 3 {
		h.want(200, "", other, "GET", path, nil)
	}
	throttled := h.want(429, "rate_limits_m.exceeded", other, "GET", path, nil)
	if throttled.header.Get("Retry-After") == "" || throttled.header.Get("RateLimit-Limit") != "3" {
		t.Errorf("headers are %v", throttled.header)
	}
	if listed := h.do(h.root, "GET", "/v1/rate-limits?"+escape("search.endpoint="+key), nil).data(); len(listed) != 1 || listed[0]["per_minute"] != 3.0 {
		t.Errorf("listed are %v", listed)
	}
	h.want(412, "common.precondition_failed", h.root, "PUT", "/v1/rate-limits", object{"endpoint": key, "per_minute": 4}, "If-Match", `"9"`)
	removed := h.want(200, "", h.root, "PUT", "/v1/rate-limits", object{"endpoint": key, "per_minute": nil}, "If-Match", set.header.Get("ETag"))
	if value, present := removed.body["per_minute"]; value != nil || !present {
		t.Errorf("removal answers %s", removed.text)
	}
	h.want(200, "", h.user(access.Advisor), "GET", path, nil)
	h.want(200, "", h.root, "PUT", "/v1/rate-limits", object{"endpoint": key, "per_minute": nil})
	if listed := h.do(h.root, "GET", "/v1/rate-limits?"+escape("search.endpoint="+key), nil).data(); len(listed) != 0 {
		t.Errorf("remaining rules: %v", listed)
	}
}

func TestSetRateLimit_RejectsInvalidInput(t *testing.T) {
	h := newHarness(t)
	key := "GET /v1/personas/{persona_id}"
	for _, body := range []object{
		{}, {"endpoint": key}, {"per_minute": 5}, {"endpoint": key, "per_minute": 0}, {"endpoint": key, "per_minute": 1_000_001},
		{"endpoint": key, "per_minute": "5"}, {"endpoint": key, "per_minute": 1.5},
	} {
		h.want(400, "common.invalid_input", h.root, "PUT", "/v1/rate-limits", body)
	}
	h.want(404, "rbac.endpoint_not_found", h.root, "PUT", "/v1/rate-limits", object{"endpoint": "GET /v1/dragons", "per_minute": 5})
	h.want(200, "", h.root, "PUT", "/v1/rate-limits", object{"endpoint": key, "per_minute": 1})
	h.want(200, "", h.root, "PUT", "/v1/rate-limits", object{"endpoint": key, "per_minute": 1_000_000})
}

func TestSetRateLimit_RejectsEndpointsWithoutLimit(t *testing.T) {
	h := newHarness(t)
	table := h.endpoints()
	table[0].Limit = ratelimit.None
	service := h.newService()
	if err := service.Start(t.Context(), table); err != nil {
		t.Fatal(err)
	}
	in := rbac.RateLimitInput{Endpoint: table[0].Key()}
	in.PerMinute.Given, in.PerMinute.Value = true, 5
	if _, err := service.SetRateLimit(h.as(h.root), in); !errors.Is(err, apierr.InvalidInput) {
		t.Errorf("got %v, want invalid input", err)
	}
}
