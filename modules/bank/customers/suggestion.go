package customers

import (
	"slices"

	"kontor/modules/kit/types"
	"kontor/server/apierr"
)

// Suggestion is the level that a customer's documents and data support today, with the grounds for it. A reviewer may decide
// otherwise, but for no level whose members are not known.
type Suggestion struct {
	Level   Level    `json:"level"`
	Grounds []Ground `json:"grounds" doc:"What a level needs: documents, and members of the customer that must be known. A level also needs what the levels below it need."`
}

// Ground is one condition of a level, with the valid documents that meet it.
type Ground struct {
	Requirement string   `json:"requirement" enum:"identity_document,proof_of_address,date_of_birth,nationality,address"`
	For         Level    `json:"for" enum:"basic,standard" doc:"The level that needs it."`
	Met         bool     `json:"met"`
	Documents   []string `json:"documents" format:"uuid" doc:"The documents that meet it and are valid today."`
}

// suggest derives the level from documents and members. No documents support enhanced: that level is always the judgement of reviewers.
func suggest(c Customer, documents []Document, today types.Date) Suggestion {
	ground := func(requirement string, level Level, meets func(DocumentType) bool) Ground {
		g := Ground{Requirement: requirement, For: level, Documents: []string{}}
		for _, d := range documents {
			if meets(d.Type) && d.validOn(today) {
				g.Documents = append(g.Documents, d.ID)
			}
		}
		g.Met = len(g.Documents) > 0
		return g
	}
	s := Suggestion{
		Level: c.knownLevel(supportedLevel(documents, today)),
		Grounds: []Ground{
			ground(needIdentity, LevelBasic, DocumentType.identifies),
			ground(needAddress, LevelStandard, func(t DocumentType) bool { return t == ProofOfAddress }),
		},
	}
	if len(c.missingMembers(LevelBasic)) > 0 {
		s.Level = LevelNone
	}
	for _, m := range requiredMembers[c.Type] {
		s.Grounds = append(s.Grounds, Ground{Requirement: m.name, For: m.level, Met: m.known(&c), Documents: []string{}})
	}
	return s
}

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
