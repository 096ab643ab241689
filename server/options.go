package server

import (
	"crypto/tls"
	"log/slog"
	"net/netip"
	"time"

	"github.com/gofiber/fiber/v2"

	"kontor/locales"
	"kontor/server/access"
	"kontor/server/endpoint"
	"kontor/server/metrics"
)

// Options configure a server.
type Options struct {
	Endpoints   []endpoint.Endpoint
	Auth        Authenticator
	Policy      *access.Current
	Rights      Rights                                         // required if a row has a subject
	Uses        Uses                                           // notes which endpoints users call; nil: none are noted
	Memory      Memory                                         // nil: everything that is remembered may be used
	People      People                                         // resolves the users whom answers name; nil: answers have no member people
	Idempotency Idempotency                                    // nil: the header Idempotency-Key has no effect
	Stored      func(err error) (Stored, bool)                 // recognizes errors that carry the answer of an earlier request
	Translate   func(err error) error                          // converts errors of lower layers to those of apierr
	Fallback    func(c *fiber.Ctx, path string) (handled bool) // serves files of the console; nil: none
	Probes      []Probe
	Nodes       func() []Node  // that use the same database; nil: there is no other
	Metrics     metrics.Source // further metrics for /metrics; nil: none
	Texts       *locales.Bundle
	Log         *slog.Logger
	Now         func() time.Time
	// SandboxPublic lets other machines see rows of the sandbox, see [Server.hides].
	SandboxPublic bool
	BaseURL       string // address of the service for clients, for the API document

	TLS              *tls.Config      // nil: plain HTTP
	Expires          func() time.Time // end of the certificate, the zero time for none; nil: none
	TrustedProxies   []netip.Prefix
	AllowedOrigins   []string
	RateLimits       bool
	PublicPerMinute  int
	PrivatePerMinute int
	Counts           Counts               // of requests to endpoints with a stored rule, over all nodes; nil: this process counts in memory
	LiveNodes        func() int           // live nodes, which divide the general limits; must be quick; nil: one
	PerCaller        int                  // requests of one caller that run at the same time; zero: no limit
	WriteTimeout     time.Duration        // for writing an answer; zero: writeTimeout
	MaxConnections   int                  // open at the same time, streams included; 0: derived from the limit of open files
	RequestTime      time.Duration        // for the service behind a row; zero: requestTime
	CallerKey        any                  // key under which the context of a request has its principal, as a string; nil: none
	ResponderKey     any                  // key under which the context of a creating request has its responder; nil: none
	Observe          func(endpoint.Event) // takes security events for the audit trail; must be quick; nil: none
	Requests         Requests             // keeps answered requests; nil: none are kept
	OnDrain          []func()             // called once when the server starts to drain
}

const (
	readTimeout   = 10 * time.Second // for a request of ordinary size to arrive
	uploadTimeout = 60 * time.Second // for one that may be larger than DefaultMaxBody
	writeTimeout  = 30 * time.Second // after it, an answer is dropped with its connection
	idleTimeout   = 64 * time.Second // longer than the minute for which proxies keep connections
	headerBytes   = 16 << 10
	answerBytes   = 8 << 10 // up to which an answer is written at once: that of a list with ten rows is
)
