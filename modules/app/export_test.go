package app

import (
	"context"

	"kontor/modules/kit/records"
)

// UpgradeDigests is the part of a start that digests records in a new form.
func UpgradeDigests(ctx context.Context, m *Modules, proofs []records.Proof) error {
	return m.upgradeDigests(ctx, proofs)
}

// FormOf returns the form of the records of a type.
func FormOf(p records.Proof) string { return formOf(p) }
