package server_test

import (
	"testing"

	"kontor/server"
	"kontor/server/servertest"
)

// BenchmarkPipeline shows what the steps of a request cost beside a handler that does nothing.
func BenchmarkPipeline(b *testing.B) {
	address, _ := start(b, func(o *server.Options) {
		o.Auth, o.PrivatePerMinute = tokens{cached: true}, 100_000_000
	})
	request := servertest.Request("GET", thingPath, "", "Authorization", "Bearer user-reader", "Accept-Language", "de-CH,de;q=0.9")
	servertest.Ratio(b, address, 20_000, 200, func(int) []byte { return request })
}
