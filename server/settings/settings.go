// Package settings holds everything an operator can set.
//
// One table, the registry, gives each setting its dotted name, its default, its one-line meaning and its rule. The
// flag, the environment variable, the member of the YAML file and the line that the settings command prints are all
// derived from that row, so a setting is declared once. Load puts the sources together (flag beats environment beats
// file beats default) and answers with typed values, or with one line that says what is wrong and where.
//
// The package does not parse command lines and does not know what the settings are used for.
package settings

import (
	"log/slog"
	"net/netip"
	"time"
)

// Settings are the values in force, grouped as their names are.
type Settings struct {
	Server        Server
	Data          Data
	CORS          CORS
	Auth          Auth
	RateLimits    RateLimits
	Quotas        Quotas
	Notifications Notifications
	Profile       Profile
	Invoices      Invoices
	Audit         Audit
	Log           Log
	Secrets       Secrets
}

// Quotas bound what one user may store.
type Quotas struct {
	Records   int
	Megabytes int
}

// Server says where and how requests are taken.
type Server struct {
	Listen         string
	BaseURL        string // empty: derived from the address that is listened on, see BaseURLFor
	Shutdown       time.Duration
	RequestTime    time.Duration
	ConsoleDir     string // empty: the console inside the executable
	TrustedProxies []netip.Prefix
}

// Data says where everything is kept.
type Data struct {
	Dir string
}

// CORS says which browser origins may call the API.
type CORS struct {
	AllowedOrigins []string
}

// Auth holds the lifetimes and limits of signing in.
type Auth struct {
	AccessToken       time.Duration
	RefreshToken      time.Duration
	CoolingOff        CoolingOff
	OTP               time.Duration
	OTPAttempts       int
	PasswordMinLength int
}

// CoolingOff is the growing pause after failed sign-ins.
type CoolingOff struct {
	FreeAttempts int
	Base         time.Duration
	Max          time.Duration
}

// RateLimits are the limits where no stored rule says otherwise.
type RateLimits struct {
	Enabled          bool
	PublicPerMinute  int
	PerCaller        int
	PrivatePerMinute int
	CodesPerHour     int
}

// Notifications says how notifications reach people.
type Notifications struct {
	SSE     SSE
	Trigger Trigger
	Queue   Queue
	Email   Email
	SMS     SMS
}

// SSE holds the limits of the event stream.
type SSE struct {
	Heartbeat          time.Duration
	ConnectionsPerUser int
}

// Trigger switches the route that makes test notifications.
type Trigger struct {
	Enabled string // TriggerAuto, TriggerOn or TriggerOff
}

// The values of Trigger.Enabled. TriggerAuto means on for a development machine only, see [Settings.TriggerEnabled].
const (
	TriggerAuto = "auto"
	TriggerOn   = "true"
	TriggerOff  = "false"
)

// Queue says how often and at what pace a delivery is tried.
type Queue struct {
	MaxAttempts int
	Base        time.Duration
	Max         time.Duration
}

// Email is the way to the mail server; without SMTPURL mail goes to the local outbox.
type Email struct {
	SMTPURL        Secret
	From           string
	AllowPlaintext bool // to another machine without TLS
}

// SMS is the way to the SMS gateway; without WebhookURL messages go to the local outbox.
type SMS struct {
	WebhookURL     Secret
	Token          Secret
	AllowPlaintext bool // to another machine without TLS
}

// Profile limits the pictures that users upload.
type Profile struct {
	AvatarMaxBytes  int64
	AvatarMaxPixels int64
}

// Invoices limits the files that are searched for QR-bills.
type Invoices struct {
	MaxBytes int64
	MaxPages int
	Timeout  time.Duration
}

// Log says what is logged and in which form.
type Log struct {
	Level  slog.Level
	Format string // LogAuto, LogText or LogJSON
}

// The values of Log.Format. LogAuto means text on a terminal and JSON otherwise.
const (
	LogAuto = "auto"
	LogText = "text"
	LogJSON = "json"
)

// Secrets come from the environment only: a command line is visible to every user of the machine, and a file is copied
// more often than its owner thinks.
type Secrets struct {
	AdminEmail    string
	AdminPassword Secret
	APIKey        Secret
	SecretKey     Secret
}

// Secret is a text that must not be printed. Its String, its JSON and its log form are a mask; convert it to string
// where the value itself is needed.
type Secret string

const mask = "********"

// String returns a mask, or "" when there is no secret.
func (s Secret) String() string {
	if s == "" {
		return ""
	}
	return mask
}

// GoString returns what String returns, so that %#v shows no secret either.
func (s Secret) GoString() string { return s.String() }

// MarshalText returns what String returns; encoding/json uses it.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// LogValue returns what String returns.
func (s Secret) LogValue() slog.Value { return slog.StringValue(s.String()) }
