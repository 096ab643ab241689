package settings

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

// Source is the source of a value.
type Source string

// The sources, in descending order of precedence.
const (
	FromFlag        Source = "flag"
	FromEnvironment Source = "environment"
	FromFile        Source = "file"
	FromDefault     Source = "default"
)

// Input contains the sources of values.
type Input struct {
	Flags   map[string][]string // by the setting's name, in the order given
	Environ []string            // as os.Environ returns it
	File    string              // path of the YAML file; empty: ConfigEnv, then none
}

// Result is the result of [Load].
type Result struct {
	Settings Settings
	Warnings []string // likely mistakes that do not prevent the start
	sources  map[string]Source
}

// Load reads all sources. Every value must be valid, even if another source overrides it. The error is one line with the
// setting, the rule and the location.
//
// An empty value counts like any other, whatever its source: it switches off what may be off, and overrides sources below. A setting
// that needs a value rejects it.
func Load(in Input) (*Result, error) {
	r, mistakes := load(in)
	if len(mistakes) > 0 {
		return nil, mistakes[0]
	}
	return r, nil
}

// load returns all mistakes, with at most one for each setting. Without mistakes, the result is complete.
func load(in Input) (r *Result, mistakes []error) {
	environ, warnings, mistakes := readEnviron(in.Environ)
	file := in.File
	if file == "" {
		file = environ[ConfigEnv]
	}
	var fromFile map[string]given
	if file != "" {
		var wrong []error
		fromFile, wrong = readFile(file)
		mistakes = append(mistakes, wrong...)
	}
	r = &Result{Warnings: warnings, sources: map[string]Source{}}
	for _, s := range registry {
		if err := r.resolve(s, in.Flags[s.Name], environ, fromFile); err != nil {
			mistakes = append(mistakes, err)
		}
	}
	if len(mistakes) > 0 {
		return nil, mistakes
	}
	r.deriveAddresses()
	if err := r.Settings.check(); err != nil {
		return nil, []error{err}
	}
	r.Warnings = append(r.Warnings, r.warnOfDatabase()...)
	return r, nil
}

// deriveAddresses sets the defaults of addresses for server.domain: an authority connects to the ports of HTTPS and HTTP.
func (r *Result) deriveAddresses() {
	if len(r.Settings.Server.Domain) == 0 {
		return
	}
	for name, port := range map[string]struct {
		address *string
		value   string
	}{"server.listen": {&r.Settings.Server.Listen, ":443"}, "server.redirect_listen": {&r.Settings.Server.RedirectListen, ":80"}} {
		if r.sources[name] == FromDefault {
			*port.address = port.value
		}
	}
}

// resolve sets the value of one setting from its sources, in ascending order of precedence: the last one wins.
func (r *Result) resolve(s Setting, flags []string, environ map[string]string, file map[string]given) error {
	values := []given{{source: FromDefault, where: "default", raw: s.Default}}
	if g, ok := file[s.Name]; ok {
		values = append(values, g)
	}
	if raw, set := environ[s.Env]; set {
		values = append(values, given{FromEnvironment, "environment variable " + s.Env, raw})
	}
	if len(flags) > 0 && !s.EnvironmentOnly {
		raw := flags[len(flags)-1]
		if s.List {
			raw = strings.Join(flags, ",")
		}
		values = append(values, given{FromFlag, "flag --" + s.Name, raw})
	}
	for _, g := range values {
		if err := s.set(&r.Settings, g.raw); err != nil {
			return s.wrong(g, err)
		}
		r.sources[s.Name] = g.source
	}
	return nil
}

// wrong returns the error line. It omits values that may contain a secret or that err already quotes.
func (s Setting) wrong(g given, err error) error {
	// Addresses may contain credentials, whatever the setting, and most of all when they are malformed.
	if s.List || s.secret() || strings.ContainsAny(g.raw, "@?") || strings.Contains(g.raw, "://") {
		return fmt.Errorf("%s %w (%s)", s.Name, err, g.where)
	}
	return fmt.Errorf("%s %w, not %q (%s)", s.Name, err, shorten(g.raw), g.where)
}

// secret reports whether the type of the setting masks its value.
func (s Setting) secret() bool {
	_, is := s.at(&Settings{}).(*Secret)
	return is
}

// check checks the rules that involve several settings.
func (s *Settings) check() error {
	switch {
	case s.Auth.CoolingOff.Max < s.Auth.CoolingOff.Base:
		return errors.New("auth.cooling_off.max_seconds must not be less than auth.cooling_off.base_seconds")
	case s.Notifications.Queue.Max < s.Notifications.Queue.Base:
		return errors.New("notifications.queue.max_seconds must not be less than notifications.queue.base_seconds")
	case s.Notifications.Email.SMTPURL != "" && s.Notifications.Email.From == "":
		return errors.New("notifications.email.from must be set together with notifications.email.smtp_url")
	}
	if err := s.checkPlaintext(); err != nil {
		return err
	}
	if err := s.Auth.OIDC.check(); err != nil {
		return err
	}
	return s.checkAdminPassword()
}

func (s *Settings) checkAdminPassword() error {
	n := utf8.RuneCountInString(string(s.Secrets.AdminPassword))
	if n > 0 && (n < s.Auth.PasswordMinLength || n > maxPasswordLength) {
		return fmt.Errorf("KONTOR_ADMIN_PASSWORD must have from %d to %d characters", s.Auth.PasswordMinLength, maxPasswordLength)
	}
	return nil
}

// readEnviron returns Kontor's variables. A variable whose name resembles a known one is an error: it is
// misspelled. Other unknown variables are a warning, since other programs may use the prefix.
func readEnviron(environ []string) (values map[string]string, warnings []string, mistakes []error) {
	known := []string{ConfigEnv}
	for _, s := range registry {
		known = append(known, s.Env)
	}
	values = map[string]string{}
	for _, entry := range environ {
		name, value, ok := strings.Cut(entry, "=")
		if !ok || !strings.HasPrefix(name, envPrefix) || ofPlatform(name, value) {
			continue
		}
		if !slices.Contains(known, name) {
			if meant := DidYouMean(name, known); meant != "" {
				mistakes = append(mistakes, fmt.Errorf("unknown environment variable %s%s; correct or remove it", shorten(name), meant))
				continue
			}
			warnings = append(warnings, fmt.Sprintf("unknown environment variable %s is ignored", shorten(name)))
		} else {
			values[name] = value
		}
	}
	return values, warnings, mistakes
}

var (
	platformName  = regexp.MustCompile(`_SERVICE_(HOST|PORT(_[A-Z0-9_]+)?)$|_PORT_[0-9]+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?$`)
	platformValue = regexp.MustCompile(`^(tcp|udp|sctp)://[^/]+:[0-9]+$`)
)

// ofPlatform reports whether Kubernetes sets the variable in each container, because a service has the name kontor.
func ofPlatform(name, value string) bool {
	return platformName.MatchString(name) || strings.HasSuffix(name, "_PORT") && platformValue.MatchString(value)
}

func lookUp(name string) (Setting, bool) {
	for _, s := range registry {
		if s.Name == name {
			return s, true
		}
	}
	return Setting{}, false
}
