// Package settings declares and loads the settings of an operator.
//
// One table, the registry, declares each setting once, with its dotted name, its default, its one-line meaning and its rule. The
// flag, the environment variable, the member of the YAML file and the output of the settings command are derived from that row.
// Load combines the sources and returns typed values, or an error of one line with the mistake and its location. Flags override
// the environment, the environment overrides the file, and the file overrides the default.
//
// The package does not parse command lines.
package settings

import (
	"log/slog"
	"net/netip"
	"slices"
	"strings"
	"time"
)

// Settings are the values in force, grouped by their names.
type Settings struct {
	Server        Server
	Bank          Bank
	Metrics       Metrics
	Data          Data
	Cluster       Cluster
	CORS          CORS
	Auth          Auth
	RateLimits    RateLimits
	Quotas        Quotas
	Notifications Notifications
	Profile       Profile
	Tasks         Tasks
	Invoices      Invoices
	Files         Files
	Imports       Imports
	Privacy       Privacy
	KYC           KYC
	Screening     Screening
	Backup        Backup
	Events        Events
	Webhooks      Webhooks
	Requests      Requests
	Audit         Audit
	Log           Log
	Secrets       Secrets
}

// Bank is what customers see of the bank in the console.
type Bank struct {
	Name       string // empty: Kontor
	Logo       string // a path; empty: that of Kontor
	Color      string // such as #0d5c63; empty: that of Kontor
	TermsURL   string // empty: no link
	PrivacyURL string // empty: no link
}

// KYC configures decisions about the verification of customers.
type KYC struct {
	FourEyes string // which decisions need a second person: off, enhanced or always
}

// Screening configures the comparison of names with lists.
type Screening struct {
	Dir              string // a folder with lists; empty: none
	ThresholdPercent int
	MaxAge           time.Duration // 0: none is too old
}

// Quotas bound what one user may store.
type Quotas struct {
	Records   int
	Megabytes int
}

// Files are the limits of evidence files, and the virus scanner that sees them first.
type Files struct {
	MaxBytes int64  // of a file
	Quota    int64  // bytes of a customer, or of a user in chats and tasks
	Clamd    string // host:port, or the path of a socket; empty: none
}

// Imports are the limits of files of customers.
type Imports struct {
	MaxBytes int64 // of a file
	KeepDays int
}

// Server configures the HTTP server.
type Server struct {
	Listen         string
	BaseURL        string // empty: derived from the listen address, see BaseURLFor
	TLSCert        string // a path; empty: none
	TLSKey         string // a path; empty: none
	Domain         []string
	RedirectListen string // empty: none
	ACMEURL        string
	ACMEEmail      string
	Shutdown       time.Duration
	RequestTime    time.Duration
	ConsoleDir     string // empty: the console inside the executable
	TrustedProxies []netip.Prefix
}

// Metrics configures the address for Prometheus.
type Metrics struct {
	Listen string // empty: none
}

// Data configures where the data are: in a directory, or in a PostgreSQL database.
type Data struct {
	Dir         string
	URL         Secret // of a PostgreSQL database; empty: Dir. DatabaseName shows it without its password
	Connections int    // to that database, for reading
}

// Cluster configures one of several nodes on a PostgreSQL database.
type Cluster struct {
	Node string // empty: the name of the machine
}

// CORS configures the browser origins that may call the API.
type CORS struct {
	AllowedOrigins []string
}

// Auth contains lifetimes and limits of sign-ins.
type Auth struct {
	AccessToken       time.Duration
	RefreshToken      time.Duration
	Decision          time.Duration // how long an authentication is enough for decisions about customers
	SessionIdle       time.Duration // 0: no limit
	SessionsMax       int           // 0: no limit
	CoolingOff        CoolingOff
	OTP               time.Duration
	Invitation        time.Duration
	OTPAttempts       int
	PasswordMinLength int
	SigningKeyDays    int    // 0: no rotation
	BreachedPasswords string // a path; empty: none
	OIDC              OIDC
	MFA               MFA
}

// MFA configures who needs a second factor.
type MFA struct {
	RequiredRoles []string // names or ids
	Grace         time.Duration
	Issuer        string // name of the bank in authenticators
}

// CoolingOff configures the lockout after failed sign-ins, which grows with each failure.
type CoolingOff struct {
	FreeAttempts int
	Base         time.Duration
	Max          time.Duration
}

// RateLimits are the limits of endpoints without a stored rule.
type RateLimits struct {
	Enabled          bool
	PublicPerMinute  int
	PerCaller        int
	PrivatePerMinute int
	CodesPerHour     int
}

// Notifications configures the delivery of notifications.
type Notifications struct {
	SSE     SSE
	Trigger Trigger
	Queue   Queue
	Email   Email
	SMS     SMS
}

// SSE contains the limits of event streams.
type SSE struct {
	Heartbeat          time.Duration
	ConnectionsPerUser int
}

// Trigger enables the endpoint for test notifications.
type Trigger struct {
	Enabled string // TriggerAuto, TriggerOn or TriggerOff
}

// The values of Trigger.Enabled. TriggerAuto enables it on development machines only, see [Settings.TriggerEnabled].
const (
	TriggerAuto = "auto"
	TriggerOn   = "true"
	TriggerOff  = "false"
)

// Queue configures the attempts of deliveries.
type Queue struct {
	MaxAttempts int
	Base        time.Duration
	Max         time.Duration
}

// Email configures the mail server; without SMTPURL, mail is written to the local outbox.
type Email struct {
	SMTPURL        Secret
	From           string
	AllowPlaintext bool // to another machine without TLS
}

// SMS configures the SMS gateway; without WebhookURL, messages are written to the local outbox.
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

// Tasks configures the reminders of tasks.
type Tasks struct {
	ReminderHour int // of the day, in UTC
}

// Invoices limits the files with QR-bills, and how long kept bills stay.
type Invoices struct {
	MaxBytes int64
	MaxPages int
	Timeout  time.Duration
	KeepDays int
}

// Privacy configures the retention of personal data.
type Privacy struct {
	RetentionYears int
}

// Backup configures the continuous backup.
type Backup struct {
	URL        string // empty: none
	Line       string // empty: none
	WholeEvery time.Duration
	Keep       time.Duration // 0: for ever
}

// Events configures the change feed.
type Events struct {
	Retention time.Duration // 0: the whole audit trail
}

// Webhooks configures the delivery of events.
type Webhooks struct {
	AllowedNetworks []netip.Prefix // that receivers may have beside public addresses
	Timeout         time.Duration
	PauseAfter      time.Duration
	Keep            time.Duration
}

// Requests configures the log of requests.
type Requests struct {
	Keep int // requests in memory; 0: none
}

// Log configures the level and the format of the log.
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

// Secrets come from the environment only: command lines are visible to every user of the machine, and files are often copied.
type Secrets struct {
	AdminEmail    string
	AdminPassword Secret
	APIKey        Secret
	PreviousKey   Secret
	SecretKey     Secret
}

// Secret is a text that must not be printed. Its String, its JSON and its log form are masked; convert it to string to use
// the value.
type Secret string

const mask = "********"

// String returns a mask, or "" for an empty secret.
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

// Setting is one row of the registry.
type Setting struct {
	Name    string // dotted, as in the file; for EnvironmentOnly the variable's name
	Env     string // the environment variable
	Type    string // kind of its values, for the help text
	Default string // in the form of the file
	Meaning string // one line
	Choices []string

	List            bool // has several values
	Switch          bool // true or false
	EnvironmentOnly bool // not available as a flag or in the file

	secret bool // its value is masked
	set    func(raw string) error
	show   func() string
	value  func() any
}

// All returns the rows of the registry in their order.
func All() []Setting { return slices.Clone(registry) }

const envPrefix = "KONTOR_"

// ConfigEnv is the environment variable with the path of the settings file, used without the flag --config.
const ConfigEnv = envPrefix + "CONFIG"

// row declares one setting: the field of its value, its name, kind, default and meaning.
func row[T any](field *T, name string, k kind[T], def, meaning string) Setting {
	_, secret := any(field).(*Secret)
	return Setting{
		Name:    name,
		Env:     envPrefix + strings.ToUpper(strings.ReplaceAll(name, ".", "_")),
		Type:    k.name,
		Default: def,
		Meaning: meaning,
		Choices: k.choices,
		List:    k.list,
		Switch:  k.isSwitch,
		secret:  secret,
		set: func(raw string) error {
			v, err := k.parse(raw)
			if err == nil {
				*field = v
			}
			return err
		},
		show:  func() string { return k.show(*field) },
		value: func() any { return k.json(*field) },
	}
}

// fromEnvironment declares a value that is available as an environment variable only.
func fromEnvironment[T any](field *T, env string, k kind[T], meaning string) Setting {
	s := row(field, env, k, "", meaning)
	s.Env = env
	s.EnvironmentOnly = true
	return s
}

// rowsOf returns the rows of settings, in the order of the help text and of the table in README.md.
func rowsOf(s *Settings) []Setting {
	return slices.Concat(serverRows(s), authRows(s), limitRows(s), notificationRows(s), otherRows(s), environmentRows(s))
}

// registry holds the rows for what does not depend on values.
var registry = rowsOf(&Settings{})
