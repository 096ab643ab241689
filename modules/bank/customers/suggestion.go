package customers

import "kontor/modules/kit/types"

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
