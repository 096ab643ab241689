package settings

import (
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"kontor/server/similar"
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
	for _, s := range rowsOf(&r.Settings) {
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
	if r.sources["server.listen"] == FromDefault {
		r.Settings.Server.Listen = ":443"
	}
	if r.sources["server.redirect_listen"] == FromDefault {
		r.Settings.Server.RedirectListen = ":80"
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
		if err := s.set(g.raw); err != nil {
			return s.wrong(g, err)
		}
		r.sources[s.Name] = g.source
	}
	return nil
}

// wrong returns the error line. It omits values that may contain a secret or that err already quotes.
func (s Setting) wrong(g given, err error) error {
	// Addresses may contain credentials, whatever the setting, and most of all when they are malformed.
	if s.List || s.secret || strings.ContainsAny(g.raw, "@?") || strings.Contains(g.raw, "://") {
		return fmt.Errorf("%s %w (%s)", s.Name, err, g.where)
	}
	return fmt.Errorf("%s %w, not %q (%s)", s.Name, err, shorten(g.raw), g.where)
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

// Line is a setting in the output for operators.
type Line struct {
	Name        string `json:"name"`
	Value       any    `json:"value"` // a number, a text, true or false, or a list; secrets are masked
	Text        string `json:"-"`     // the value in the form of the file; secrets are masked
	Source      Source `json:"source"`
	Default     any    `json:"default"` // has the type of Value; the zero value means that there is no default
	DefaultText string `json:"-"`       // the default in the form of the file
	Environment string `json:"environment"`
	Flag        string `json:"flag,omitempty"`
	Meaning     string `json:"meaning"`
}

// Lines returns every setting with its value in force and the source of the value, in the order of the registry.
func (r *Result) Lines() []Line {
	lines := make([]Line, 0, len(registry))
	defaults := rowsOf(&Settings{})
	for i, s := range rowsOf(&r.Settings) {
		_ = defaults[i].set(s.Default) // Load has accepted every default
		l := Line{
			Name:        s.Name,
			Value:       s.value(),
			Text:        s.show(),
			Source:      r.sources[s.Name],
			Default:     defaults[i].value(),
			DefaultText: s.Default,
			Environment: s.Env,
			Meaning:     s.Meaning,
		}
		if !s.EnvironmentOnly {
			l.Flag = "--" + s.Name
		}
		lines = append(lines, l)
	}
	return lines
}

// Source returns where the value of a setting comes from.
func (r *Result) Source(name string) Source { return r.sources[name] }

// DidYouMean returns ` (did you mean "…"?)` with the known name that is closest to the wrong one, or "".
func DidYouMean(wrong string, known []string) string {
	best := similar.Closest(wrong, known, strings.ToLower)
	if best == "" {
		for _, name := range known { // only the last part, or other separators
			if strings.HasSuffix(name, "."+wrong) || flat(name) == flat(wrong) {
				best = name
				break
			}
		}
	}
	if best == "" {
		return ""
	}
	return ` (did you mean "` + best + `"?)`
}

func flat(name string) string {
	return strings.ToLower(strings.NewReplacer(".", "", "_", "", "-", "").Replace(name))
}

const maxShown = 80 // characters of a wrong value in an error

func shorten(s string) string {
	if utf8.RuneCountInString(s) <= maxShown {
		return s
	}
	return string([]rune(s)[:maxShown]) + "…"
}

type unit struct {
	suffix string
	factor int64
}

// Binary units come first, in descending order: show uses the first that divides the value.
var sizeUnits = []unit{
	{"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10},
	{"GB", 1_000_000_000}, {"MB", 1_000_000}, {"kB", 1_000}, {"B", 1},
}

var pixelUnits = []unit{{"MP", 1_000_000}}

// size parses bytes: 5MiB, 5 MB or a plain number.
func size(lowest, highest int64) kind[int64] {
	return measured("size", sizeUnits, lowest, highest)
}

// pixels parses a number of pixels: 40MP (megapixels) or a plain number.
func pixels(lowest, highest int64) kind[int64] {
	return measured("pixels", pixelUnits, lowest, highest)
}

func measured(name string, units []unit, lowest, highest int64) kind[int64] {
	show := func(n int64) string { return showMeasure(n, units) }
	return kind[int64]{
		name: name,
		parse: func(raw string) (int64, error) {
			n, ok := parseMeasure(raw, units)
			if !ok || n < lowest || n > highest {
				return 0, fmt.Errorf("must be from %s to %s, written as a plain number or with a unit (%s)",
					show(lowest), show(highest), suffixes(units))
			}
			return n, nil
		},
		show: show,
		json: itself[int64],
	}
}

func parseMeasure(raw string, units []unit) (int64, bool) {
	factor := int64(1)
	for _, u := range units {
		if cut := len(raw) - len(u.suffix); cut > 0 && strings.EqualFold(raw[cut:], u.suffix) {
			raw, factor = strings.TrimRight(raw[:cut], " "), u.factor
			break
		}
	}
	n, err := whole(raw, 0, math.MaxInt64/factor)
	return n * factor, err == nil
}

func showMeasure(n int64, units []unit) string {
	for _, u := range units {
		if n >= u.factor && n%u.factor == 0 && u.factor > 1 {
			return strconv.FormatInt(n/u.factor, 10) + u.suffix
		}
	}
	return strconv.FormatInt(n, 10)
}

func suffixes(units []unit) string {
	names := make([]string, len(units))
	for i, u := range units {
		names[i] = u.suffix
	}
	return strings.Join(names, ", ")
}
