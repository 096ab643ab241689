package app

import (
	"context"

	"kontor/modules/kit/personal"
	"kontor/store"
)

// keepChanges makes the store keep changed fields of the records that say so in their proofs, unless the setting is 0.
func (m *Modules) keepChanges() {
	if m.Settings.Audit.ChangedFields <= 0 {
		return
	}
	rules := map[string]store.ChangeRule{"invitations": {}, "screening_checks": {}} // they have audit entries, and no proof
	for _, p := range Proofs() {
		if p.Changes != nil {
			rules[p.Type] = *p.Changes
		}
	}
	m.DB.KeepChanges(store.Changes{Rules: rules, Erase: personal.Action})
}

// purgeChanges deletes changed fields that are older than the setting; 0 deletes all.
func (m *Modules) purgeChanges(ctx context.Context) error {
	return m.DB.PurgeChangedFields(ctx, m.Settings.Audit.ChangedFields)
}
