package app

import (
	"context"
	"sync/atomic"

	"kontor/modules/kit/records"
)

// UpgradeDigests is the part of a start that digests records in a new form.
func UpgradeDigests(ctx context.Context, m *Modules, proofs []records.Proof) error {
	return m.upgradeDigests(ctx, proofs)
}

// FormOf returns the form of the records of a type.
func FormOf(p records.Proof) string { return formOf(p) }

// Held returns how often the feed, the streams of notifications and the webhooks were held back because a right was due to begin or end.
func (m *Modules) Held() (changes, notifications, webhooks *atomic.Int64) {
	return &m.held.changes, &m.held.notifications, &m.held.webhooks
}
