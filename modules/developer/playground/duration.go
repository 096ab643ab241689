package playground

import (
	"errors"
	"strings"
	"time"
)

// duration is an ISO 8601 duration. Its years, months and days are those of the calendar.
type duration struct {
	years, months, days int
	seconds             int64 // of the hours, minutes and seconds
}

// maxNumber bounds each number of a duration, so that sums of them do not overflow.
const maxNumber = 10_000_000

var errDuration = errors.New("not a duration of ISO 8601")

// parseDuration reads P1Y2M3W4DT5H6M7S, of which all but one part may be missing. Numbers are whole.
func parseDuration(text string) (d duration, err error) {
	rest, ok := strings.CutPrefix(text, "P")
	if !ok {
		return d, errDuration
	}
	date, clock, timed := strings.Cut(rest, "T")
	if date == "" && clock == "" || timed && clock == "" {
		return d, errDuration
	}
	var weeks, hours, minutes, seconds int
	if !parts(date, "YMWD", &d.years, &d.months, &weeks, &d.days) || !parts(clock, "HMS", &hours, &minutes, &seconds) {
		return duration{}, errDuration
	}
	d.days += 7 * weeks
	d.seconds = 3600*int64(hours) + 60*int64(minutes) + int64(seconds)
	return d, nil
}

// parts reads numbers that end with the units, in their order. It reports false for anything else.
func parts(text, units string, values ...*int) bool {
	for at := 0; text != ""; {
		n, digits := 0, 0
		for digits < len(text) && text[digits] >= '0' && text[digits] <= '9' {
			if n = 10*n + int(text[digits]-'0'); n > maxNumber {
				return false
			}
			digits++
		}
		if digits == 0 || digits == len(text) {
			return false
		}
		unit := strings.IndexByte(units[at:], text[digits])
		if unit < 0 {
			return false
		}
		at += unit
		*values[at] = n
		at++
		text = text[digits+1:]
	}
	return true
}

// longer reports whether one of the parts alone is longer than the years.
func (d duration) longer(years int) bool {
	return d.years > years || d.months > 12*years || d.days > 366*years || d.seconds > int64(366*years)*24*3600
}

// after returns the moment that is the duration later, which must not be longer than some centuries.
func (d duration) after(t time.Time) time.Time {
	return t.AddDate(d.years, d.months, d.days).Add(time.Duration(d.seconds) * time.Second)
}
