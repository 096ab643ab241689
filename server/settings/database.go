package settings

import (
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// databaseParameters are the parameters that data.url may have, with the check of their values. Other parameters would change
// the session of every statement.
var databaseParameters = map[string]func(string) bool{
	"host":                 func(v string) bool { return v != "" },
	"port":                 func(v string) bool { return validPorts(v) },
	"user":                 func(v string) bool { return v != "" },
	"password":             func(string) bool { return true },
	"passfile":             func(v string) bool { return v != "" },
	"sslmode":              oneOf("disable", "allow", "prefer", "require", "verify-ca", "verify-full"),
	"sslnegotiation":       oneOf("postgres", "direct"),
	"sslrootcert":          func(v string) bool { return v != "" },
	"sslcert":              func(v string) bool { return v != "" },
	"sslkey":               func(v string) bool { return v != "" },
	"sslpassword":          func(string) bool { return true },
	"sslsni":               oneOf("0", "1"),
	"channel_binding":      oneOf("disable", "prefer", "require"),
	"connect_timeout":      func(v string) bool { _, err := whole(v, 1, 3600); return err == nil },
	"target_session_attrs": oneOf("any", "read-write", "primary"),
	"application_name":     func(v string) bool { return v != "" },
}

func oneOf(values ...string) func(string) bool {
	return func(v string) bool { return slices.Contains(values, v) }
}

func validPorts(list string) bool {
	for port := range strings.SplitSeq(list, ",") {
		if !validPort(port, 1) {
			return false
		}
	}
	return true
}

// databaseURL accepts the address of a PostgreSQL database, in the form of libpq. Its errors and its output never contain a
// password.
var databaseURL = kind[Secret]{
	name: "URL",
	parse: func(raw string) (Secret, error) {
		_, err := parseDatabase(raw)
		return Secret(raw), err
	},
	show: func(s Secret) string { return DatabaseName(string(s)) },
	json: func(s Secret) any { return DatabaseName(string(s)) },
}

// database is a parsed data.url.
type database struct {
	*url.URL
	hosts []string // without ports; a path is the directory of a socket
	query url.Values
}

func parseDatabase(raw string) (d database, err error) {
	wrong := errors.New("must be a URL such as postgres://kontor@db.example/kontor?sslmode=verify-full, with the name of a database")
	if strings.ContainsFunc(raw, func(r rune) bool { return unicode.IsControl(r) || unicode.IsSpace(r) }) {
		return d, wrong
	}
	if d.URL, err = url.Parse(raw); err != nil || d.Opaque != "" || d.Fragment != "" || d.Scheme != "postgres" && d.Scheme != "postgresql" {
		return d, wrong
	}
	if name := strings.TrimPrefix(d.Path, "/"); name == "" || strings.Contains(name, "/") {
		return d, wrong
	}
	if d.query, err = url.ParseQuery(d.RawQuery); err != nil {
		return d, wrong
	}
	for _, name := range slices.Sorted(maps.Keys(d.query)) {
		valid, known := databaseParameters[name]
		switch {
		case !known:
			return d, fmt.Errorf("has an unknown parameter %s; known are %s", strconv.Quote(shorten(name)),
				strings.Join(slices.Sorted(maps.Keys(databaseParameters)), ", "))
		case len(d.query[name]) > 1 || !valid(d.query.Get(name)):
			return d, fmt.Errorf("has a wrong value of the parameter %s", name)
		}
	}
	if err := d.readHosts(); err != nil {
		return d, err
	}
	if len(d.hosts) > 1 && (d.query.Get("target_session_attrs") == "" || d.query.Get("target_session_attrs") == "any") {
		return d, errors.New("names several hosts and must have target_session_attrs=read-write: a standby accepts no writes")
	}
	return d, nil
}

// readHosts reads the hosts, from the authority of the URL or from the parameter host.
func (d *database) readHosts() error {
	list := d.Host
	if parameter := d.query.Get("host"); parameter != "" {
		if list != "" {
			return errors.New("has a host and a parameter host; use one of them")
		}
		list = parameter
	}
	if list == "" {
		return nil // the socket of this machine
	}
	for part := range strings.SplitSeq(list, ",") {
		host, port := part, ""
		if !strings.HasPrefix(part, "/") {
			host, port = hostAndPort(part)
		}
		if port != "" && !validPort(port, 1) || !strings.HasPrefix(host, "/") && !validHost(host) {
			return errors.New("has a wrong host or port")
		}
		d.hosts = append(d.hosts, host)
	}
	return nil
}

func hostAndPort(authority string) (host, port string) {
	u := url.URL{Host: authority}
	return u.Hostname(), u.Port()
}

// local reports whether all hosts are this machine.
func (d *database) local() bool {
	for _, host := range d.hosts {
		if !strings.HasPrefix(host, "/") && !local(&url.URL{Host: bracketed(host)}) {
			return false
		}
	}
	return true
}

func bracketed(host string) string {
	if strings.Contains(host, ":") {
		return "[" + host + "]"
	}
	return host
}

// CheckDatabaseURL returns an error that completes the sentence "<setting> …", unless the text is a valid data.url. It contains no
// password.
func CheckDatabaseURL(raw string) error {
	_, err := parseDatabase(raw)
	return err
}

// DatabaseName returns a data.url without its secrets, for messages. It returns "" for an empty text, and a mask for one that
// is no such URL.
func DatabaseName(raw string) string {
	if raw == "" {
		return ""
	}
	d, err := parseDatabase(raw)
	if err != nil {
		return mask
	}
	shown := d.Scheme + "://"
	if d.User != nil {
		shown += url.User(d.User.Username()).String()
		if _, has := d.User.Password(); has {
			shown += ":" + mask
		}
		shown += "@"
	}
	shown += d.Host + d.EscapedPath()
	separator := "?"
	for _, name := range slices.Sorted(maps.Keys(d.query)) {
		value := d.query.Get(name)
		if name == "password" || name == "sslpassword" {
			value = mask
		}
		shown += separator + name + "=" + value
		separator = "&"
	}
	return shown
}

// warnOfDatabase returns warnings about data.url and what has no effect beside it.
func (r *Result) warnOfDatabase() (warnings []string) {
	if r.Settings.Data.URL == "" {
		return nil
	}
	d, err := parseDatabase(string(r.Settings.Data.URL))
	if err != nil {
		return nil // rejected before
	}
	_, password := d.User.Password()
	if r.sources["data.url"] == FromFlag && (password || d.query.Get("password") != "") {
		warnings = append(warnings, "every user of this machine can read the password in --data.url; set KONTOR_DATA_URL instead")
	}
	if mode := d.query.Get("sslmode"); !d.local() && (mode == "" || mode == "allow" || mode == "prefer") {
		warnings = append(warnings, "data.url allows an unencrypted connection to another machine; add sslmode=verify-full, or sslmode=disable for a private network")
	}
	return warnings
}

// nodeName is the name of a node in health and logs.
var nodeName = text("name", func(raw string) (string, error) {
	const longest = 63
	wrong := func(r rune) bool {
		return !(r == '-' || r == '_' || r == '.' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z')
	}
	if raw == "" || len(raw) > longest || strings.ContainsFunc(raw, wrong) {
		return "", fmt.Errorf("must have from 1 to %d letters, digits, hyphens, dots and underscores", longest)
	}
	return raw, nil
})
