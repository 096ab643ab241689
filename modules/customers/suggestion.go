package customers

import "kontor/modules/kit/types"

// Suggestion is the level that a customer's documents support today, with the grounds for it. A reviewer may decide otherwise.
type Suggestion struct {
	Level   Level    `json:"level"`
	Grounds []Ground `json:"grounds" doc:"What a level needs: identity_document for basic, and proof_of_address for standard."`
}

// Ground is one condition of a level, with the valid documents that meet it.
type Ground struct {
	Requirement string   `json:"requirement" enum:"identity_document,proof_of_address"`
	For         Level    `json:"for" enum:"basic,standard" doc:"The level that needs it."`
	Met         bool     `json:"met"`
	Documents   []string `json:"documents" format:"uuid" doc:"The documents that meet it and are valid today."`
}

// suggest derives the level from documents. The level agrees with supportedLevel. No documents support enhanced: that level
// is always the judgement of reviewers.
func suggest(documents []Document, today types.Date) Suggestion {
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
	return Suggestion{
		Level: supportedLevel(documents, today),
		Grounds: []Ground{
			ground(needIdentity, LevelBasic, DocumentType.identifies),
			ground(needAddress, LevelStandard, func(t DocumentType) bool { return t == ProofOfAddress }),
		},
	}
}
