package names

import "slices"

// Birth is a date of birth as far as it is known: lists often name the year alone. Zero stands for unknown.
type Birth struct{ Year, Month, Day int }

// Signals are what else is known of a name: they can lower a score and never raise it. Missing ones change nothing.
type Signals struct {
	Births    []Birth
	Countries []string // ISO 3166-1 alpha-2
}

// By how much a contradiction lowers a score.
const (
	otherYear    = 0.8  // born at least two years apart
	otherDay     = 0.95 // born in the same or the next year, on another day
	otherCountry = 0.95
)

// Factor returns by how much a score is multiplied: 1 unless a signal contradicts.
func (s Signals) Factor(entry Signals) float64 {
	factor := 1.0
	if len(s.Births) > 0 && len(entry.Births) > 0 {
		factor = 0
		for _, a := range s.Births {
			for _, b := range entry.Births {
				factor = max(factor, a.factor(b))
			}
		}
	}
	if len(s.Countries) > 0 && len(entry.Countries) > 0 && !slices.ContainsFunc(s.Countries, func(c string) bool { return slices.Contains(entry.Countries, c) }) {
		factor *= otherCountry
	}
	return factor
}

// factor compares two dates. Lists exchange day and month, and name a year that is off by one.
func (b Birth) factor(other Birth) float64 {
	switch apart := b.Year - other.Year; {
	case b.Year == 0 || other.Year == 0:
		return 1
	case apart < -1 || apart > 1:
		return otherYear
	case b.Month == 0 || other.Month == 0:
		return 1
	case b == other, b.Year == other.Year && b.Month == other.Day && b.Day == other.Month:
		return 1
	case b.Year == other.Year && b.Month == other.Month && (b.Day == 0 || other.Day == 0):
		return 1
	default:
		return otherDay
	}
}
