package screening

import (
	"context"

	"kontor/modules/kit/personal"
	"kontor/server/access"
	"kontor/store"
)

const section = "screening_hits"

// PersonalData lists the tables of the module.
func (s *Service) PersonalData() []personal.Table {
	const published = "It holds what the authors of sanctions lists have published, and no data of customers."
	return []personal.Table{{Name: listsTable, Why: "It holds the names of lists and ids of those who loaded them."},
		{Name: "screening_loads", Why: "It holds ids and the names of lists."}, {Name: "screening_entries", Why: published},
		{Name: hitsTable, Holds: "names, dates of birth and countries of records that are like entries of sanctions lists, with the decisions; deleted with the person", Sections: []string{section}},
		{Name: "screening_hit_changes", Holds: "the history of hits with its reasons; deleted with the person", Sections: []string{section}},
		{Name: "screening_progress", Why: "It holds an id and numbers."}}
}

const (
	selectHitsOf = `SELECT ` + hitColumns + ` FROM screening_hits WHERE customer_id = $1 AND id > $2 ORDER BY id LIMIT $3`

	selectHitsOfPersona = `
		SELECT ` + hitColumns + ` FROM screening_hits WHERE subject_type = 'persona' AND subject_id = $1 AND id > $2 ORDER BY id LIMIT $3`

	selectHitIDs = `SELECT id FROM screening_hits WHERE customer_id = $1 AND id > $2 ORDER BY id LIMIT $3`

	selectHitIDsOfPersona = `
		SELECT id FROM screening_hits WHERE subject_type = 'persona' AND subject_id = $1 AND id > $2 ORDER BY id LIMIT $3`

	deleteHitChanges = `DELETE FROM screening_hit_changes WHERE hit_id = $1`
	deleteHit        = `DELETE FROM screening_hits WHERE id = $1`
)

// PersonalSections declares the hits. They are in reports for the data-protection officer alone, and not in those that officers read about
// themselves: the person must not learn of them.
func (s *Service) PersonalSections() []personal.Section {
	reported := func(kind personal.Kind, statement string) personal.Section {
		return personal.Reported(personal.About{Name: section, Kind: kind, Rule: personal.InReports},
			func(ctx context.Context, q store.Querier, of personal.Subject, after string) (batch []personal.Keyed[HitDetails], more bool, err error) {
				hits, err := store.All(ctx, q, scanHit, statement, of.ID, after, personal.Batch)
				for _, h := range hits {
					own, err := s.ownHit(ctx, q, h)
					if err != nil {
						return nil, false, err
					}
					if own {
						continue
					}
					d, err := s.details(ctx, q, h)
					if err != nil {
						return nil, false, err
					}
					batch = append(batch, personal.Keyed[HitDetails]{Key: h.ID, Row: d})
				}
				return batch, len(hits) == personal.Batch, err
			})
	}
	return []personal.Section{reported(personal.Customer, selectHitsOf), reported(personal.Persona, selectHitsOfPersona)}
}

// ownHit reports whether a hit is about the caller.
func (s *Service) ownHit(ctx context.Context, q store.Querier, h storedHit) (bool, error) {
	return s.Reviews.IsSubject(ctx, q, h.Hit, access.From(ctx).UserID)
}

// ErasePerson deletes the hits of a person and of their payers, with the history: the name of an entry identifies a person. The comparison
// writes none about an erased record.
func (s *Service) ErasePerson(ctx context.Context, tx *store.Tx, subject personal.Subject, cursor string) (string, error) {
	switch subject.Kind {
	case personal.Customer:
		return personal.Run(ctx, tx, cursor, personal.EachID(selectHitIDs, subject.ID, eraseHit))
	case personal.Persona:
		return personal.Run(ctx, tx, cursor, personal.EachID(selectHitIDsOfPersona, subject.ID, eraseHit))
	case personal.User:
	}
	return "", nil
}

func eraseHit(ctx context.Context, tx *store.Tx, id string) error {
	return hitProof.Change(ctx, tx, personal.Action, id, func() error { return tx.RunEach(ctx, id, deleteHitChanges, deleteHit) })
}
