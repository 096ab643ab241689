package customers

import (
	"slices"

	"kontor/modules/kit/types"
	"kontor/server/apierr"
)

// requiredMember is a member of a customer that must be known for a level of verification, and for the levels above it.
type requiredMember struct {
	name  string
	level Level
	known func(c *Customer) bool
}

// requiredMembers is the policy by the type of the customer: a verified person has a date of birth and a nationality, and a customer
// with a proven address has one in the record.
var requiredMembers = map[string][]requiredMember{
	Individual: {
		{"date_of_birth", LevelBasic, func(c *Customer) bool { return !c.DateOfBirth.IsZero() }},
		{"nationality", LevelBasic, func(c *Customer) bool { return types.EmptyIfNil(c.Nationality) != "" }},
		{"address", LevelStandard, (*Customer).knownAddress},
	},
	Business: {{"address", LevelStandard, (*Customer).knownAddress}},
}

// knownAddress reports whether the address of the customer has a town and a country.
func (c *Customer) knownAddress() bool { return c.address().City != "" && c.address().Country != "" }

// rank returns the place of a level among the levels.
func (l Level) rank() int { return slices.Index(l.Values(), string(l)) }

// missingMembers returns the names of the members that a level needs and that are not known. It never returns nil.
func (c Customer) missingMembers(level Level) []string {
	missing := []string{}
	for _, m := range requiredMembers[c.Type] {
		if m.level.rank() <= level.rank() && !m.known(&c) {
			missing = append(missing, m.name)
		}
	}
	return missing
}

// checkMembers returns apierr.MembersMissing for a verified customer of whom a member is not known that the level needs.
func (c Customer) checkMembers() error {
	if c.KYCStatus != Verified {
		return nil
	}
	if missing := c.missingMembers(c.VerificationLevel); len(missing) > 0 {
		return apierr.MembersMissing.Detail("missing", missing)
	}
	return nil
}

// knownLevel lowers a level to the highest one for which all members are known, and at least to basic.
func (c Customer) knownLevel(level Level) Level {
	if level == LevelStandard && len(c.missingMembers(LevelStandard)) > 0 {
		return LevelBasic
	}
	return level
}
