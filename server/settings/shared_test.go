package settings_test

import (
	"maps"
	"slices"
	"testing"

	"kontor/server/settings"
)

// The digests of nodes agree exactly when the settings do that must. They have no value.
func TestShared_DigestsWhatMustAgree(t *testing.T) {
	shared := func(environ ...string) map[string]string {
		t.Helper()
		r, err := settings.Load(settings.Input{Environ: environ})
		if err != nil {
			t.Fatal(err)
		}
		return r.Shared()
	}
	if d := shared("KONTOR_SERVER_LISTEN=127.0.0.1:1", "KONTOR_LOG_LEVEL=debug", "KONTOR_CLUSTER_NODE=a", "KONTOR_KYC_FOUR_EYES=enhanced"); len(d) != 0 {
		t.Errorf("settings of a node and defaults: %v", d)
	}
	one, other := shared("KONTOR_KYC_FOUR_EYES=always", "KONTOR_CORS_ALLOWED_ORIGINS=https://a.example,https://b.example"), shared("KONTOR_KYC_FOUR_EYES=off")
	if got := slices.Sorted(maps.Keys(one)); !slices.Equal(got, []string{"cors.allowed_origins", "kyc.four_eyes"}) {
		t.Errorf("got %v", got)
	}
	if one["kyc.four_eyes"] == other["kyc.four_eyes"] || len(one["kyc.four_eyes"]) != 16 {
		t.Errorf("digests %q and %q", one["kyc.four_eyes"], other["kyc.four_eyes"])
	}
	if again := shared("KONTOR_CORS_ALLOWED_ORIGINS=https://a.example,https://b.example", "KONTOR_KYC_FOUR_EYES=always"); !maps.Equal(again, one) {
		t.Errorf("the same settings: %v and %v", again, one)
	}
}
