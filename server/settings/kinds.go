package settings

import (
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

const (
	maxPasswordLength  = 128
	minAPIKeyLength    = 16
	minSecretKeyLength = 32 // characters: 128 bits even when they are hexadecimal digits
)

// kind describes how values of a setting are parsed and shown. The error of parse completes the sentence "<setting> …", for
// example "must be true or false".
type kind[T any] struct {
	name     string
	choices  []string
	list     bool
	isSwitch bool
	parse    func(string) (T, error)
	show     func(T) string // for operators; secrets are masked
	json     func(T) any
}

func itself[T any](v T) any { return v }

func text(name string, parse func(string) (string, error)) kind[string] {
	return kind[string]{
		name: name, parse: parse, json: itself[string],
		show: func(v string) string { return v },
	}
}

// optional also accepts an empty value, for a setting without a value.
func optional[T ~string](k kind[T]) kind[T] {
	parse := k.parse
	k.parse = func(raw string) (T, error) {
		if raw == "" {
			return "", nil
		}
		return parse(raw)
	}
	return k
}

func whole(raw string, lowest, highest int64) (int64, error) {
	n, err := strconv.ParseInt(raw, 10, 64)
	if err != nil || n < lowest || n > highest {
		return 0, fmt.Errorf("must be a whole number from %d to %d", lowest, highest)
	}
	return n, nil
}

func number(lowest, highest int64) kind[int] {
	return kind[int]{
		name: "number",
		parse: func(raw string) (int, error) {
			n, err := whole(raw, lowest, highest)
			return int(n), err
		},
		show: strconv.Itoa,
		json: itself[int],
	}
}

// duration parses a whole number of units, at least one; the unit is part of the setting's name.
func duration(unit time.Duration, highest int64) kind[time.Duration] {
	return kind[time.Duration]{
		name: "number",
		parse: func(raw string) (time.Duration, error) {
			n, err := whole(raw, 1, highest)
			return time.Duration(n) * unit, err
		},
		show: func(d time.Duration) string { return strconv.FormatInt(int64(d/unit), 10) },
		json: func(d time.Duration) any { return int64(d / unit) },
	}
}

func seconds(highest int64) kind[time.Duration] { return duration(time.Second, highest) }

func minutes(highest int64) kind[time.Duration] { return duration(time.Minute, highest) }

func hours(highest int64) kind[time.Duration] { return duration(time.Hour, highest) }

func days(highest int64) kind[time.Duration] { return duration(24*time.Hour, highest) }

// orNone also accepts 0, which means no limit, or no time.
func orNone(k kind[time.Duration], lowest, highest int64) kind[time.Duration] {
	parse := k.parse
	k.parse = func(raw string) (time.Duration, error) {
		if raw == "0" {
			return 0, nil
		}
		if _, err := whole(raw, lowest, highest); err != nil {
			return 0, fmt.Errorf("must be 0 or a whole number from %d to %d", lowest, highest)
		}
		return parse(raw)
	}
	return k
}

// names parses names of letters, digits, hyphens, dots and underscores.
var names = list("list of names", func(raw string) (string, error) {
	wrong := func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("-._", r)
	}
	if strings.ContainsFunc(raw, wrong) {
		return "", fmt.Errorf("%q must consist of letters, digits, hyphens, dots and underscores", raw)
	}
	return raw, nil
}, func(s string) string { return s })

var toggle = kind[bool]{
	name:     "true or false",
	choices:  []string{"true", "false"},
	isSwitch: true,
	parse: func(raw string) (bool, error) {
		switch strings.ToLower(raw) {
		case "true", "yes", "on", "1":
			return true, nil
		case "false", "no", "off", "0":
			return false, nil
		}
		return false, errors.New("must be true or false")
	},
	show: strconv.FormatBool,
	json: itself[bool],
}

func choice(values ...string) kind[string] {
	k := text("choice", func(raw string) (string, error) {
		for _, v := range values {
			if strings.EqualFold(raw, v) {
				return v, nil
			}
		}
		return "", errors.New("must be one of " + strings.Join(values, ", "))
	})
	k.choices = values
	return k
}

var logLevel = func() kind[slog.Level] {
	levels := choice("debug", "info", "warn", "error")
	return kind[slog.Level]{
		name:    levels.name,
		choices: levels.choices,
		parse: func(raw string) (level slog.Level, err error) {
			if raw, err = levels.parse(raw); err == nil {
				err = level.UnmarshalText([]byte(raw))
			}
			return level, err
		},
		show: func(l slog.Level) string { return strings.ToLower(l.String()) },
		json: func(l slog.Level) any { return strings.ToLower(l.String()) },
	}
}()

// backupAddress accepts what looks like an address or a path; the target itself is opened later.
var backupAddress = text("address or path", func(raw string) (string, error) {
	if strings.ContainsFunc(raw, unicode.IsControl) {
		return "", errors.New("must not contain control characters")
	}
	u, err := url.Parse(raw)
	switch {
	case err != nil:
		return "", errors.New("must be an address such as s3://bucket/prefix, or a path")
	case u.User != nil || u.Scheme == "s3" && (strings.Contains(u.Query().Get("endpoint"), "@") || u.Fragment != ""):
		return "", errors.New("must not contain credentials: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY")
	case u.Scheme != "" && u.Scheme != "s3" && u.Scheme != "file":
		return "", errors.New("must begin with s3:// or file://, or be a path")
	}
	return raw, nil
})

// incarnation accepts the name of an incarnation of a database.
var incarnation = text("incarnation", func(raw string) (string, error) {
	if len(raw) != 16 || strings.Trim(raw, "abcdefghijklmnopqrstuvwxyz234567") != "" {
		return "", errors.New("must be the 16 letters and digits of an incarnation, as the log and kontor restore --list show it")
	}
	return raw, nil
})

var path = text("path", func(raw string) (string, error) {
	if raw == "" || strings.ContainsFunc(raw, unicode.IsControl) {
		return "", errors.New("must be a path without control characters")
	}
	return raw, nil
})

// secret accepts printable texts of a minimum length. It rejects spaces at the ends and line breaks, which are copying mistakes.
func secret(shortest int) kind[Secret] {
	return kind[Secret]{
		name: "secret",
		parse: func(raw string) (Secret, error) {
			if strings.ContainsFunc(raw, unicode.IsControl) || strings.TrimSpace(raw) != raw || !utf8.ValidString(raw) {
				return "", errors.New("must not contain line breaks, control characters or outer spaces")
			}
			if utf8.RuneCountInString(raw) < shortest {
				return "", fmt.Errorf("must have at least %d characters", shortest)
			}
			return Secret(raw), nil
		},
		show: Secret.String,
		json: func(s Secret) any { return s.String() },
	}
}

// fields splits a list at commas and white space.
func fields(raw string) []string {
	return strings.FieldsFunc(raw, func(r rune) bool { return r == ',' || unicode.IsSpace(r) })
}

// list parses several values; one parses a single value, and show is its form in the file. The error quotes the wrong value.
func list[T any](name string, one func(string) (T, error), show func(T) string) kind[[]T] {
	shown := func(vs []T) []string {
		texts := make([]string, len(vs))
		for i, v := range vs {
			texts[i] = show(v)
		}
		return texts
	}
	return kind[[]T]{
		name: name,
		list: true,
		parse: func(raw string) ([]T, error) {
			var all []T
			for _, f := range fields(raw) {
				v, err := one(f)
				if err != nil {
					return nil, err
				}
				all = append(all, v)
			}
			return all, nil
		},
		show: func(vs []T) string { return strings.Join(shown(vs), ",") },
		json: func(vs []T) any { return shown(vs) },
	}
}
