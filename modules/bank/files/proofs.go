package files

import (
	"context"

	"kontor/modules/kit/attachment"
	"kontor/modules/kit/records"
	"kontor/store"
)

// migration is the number of the migration that created the tables.
const migration = 39

// auditTypes are the types of files in the audit trail. There is one for each kind of record: the change feed derives the type of an
// event from it.
var auditTypes = map[attachment.Kind]string{
	attachment.Document: "kyc_files", attachment.Message: "chat_files", attachment.Task: "task_files",
}

// Proofs returns how the audit trail digests files. Not covered are the key, which each rotation seals again, and the number of chunks,
// which follows from the size. The content is covered by its digest.
func Proofs() []records.Proof {
	var proofs []records.Proof
	for _, kind := range attachment.Document.Values() {
		proofs = append(proofs, proofOf(attachment.Kind(kind)))
	}
	return proofs
}

func proofOf(kind attachment.Kind) records.Proof {
	return records.Proof{
		Type: auditTypes[kind], Key: "id", Read: readFile, Migration: migration,
		From: "(SELECT id FROM files WHERE record_type = '" + string(kind) + "' AND status IN ('checking', 'ready', 'infected')) AS kept",
	}
}

func readFile(ctx context.Context, q store.Querier, id string) (store.Record, error) {
	f, err := scanFile(q.QueryRow(ctx, selectOne, id))
	return f.record(), err
}

// record returns the form that digests cover.
func (f StoredFile) record() store.Record {
	return store.Record{Answer: f, Stored: map[string]any{"account": f.account, "charged": f.charged}}
}

// audit adds an audit entry about a file. before and after are records or digests; nil means that there was no file.
func (f StoredFile) audit(ctx context.Context, tx *store.Tx, action string, before, after any) {
	tx.Audit(store.AuditEntry{Actor: records.Actor(ctx), Action: action, RecType: auditTypes[f.RecordType], RecID: f.ID, Before: before, After: after})
}

// The records whose events the entries are.
const (
	selectParents = `SELECT id, parent_id FROM files WHERE id IN (%s)`
	selectRecords = `SELECT id, record_id FROM files WHERE id IN (%s)`
)

// Parents returns the customers or chats of files, by the ids of the files.
func Parents(ctx context.Context, q store.Querier, ids []string) (map[string]string, error) {
	return store.Pairs(ctx, q, selectParents, ids)
}

// RecordsOf returns the records of files, by the ids of the files.
func RecordsOf(ctx context.Context, q store.Querier, ids []string) (map[string]string, error) {
	return store.Pairs(ctx, q, selectRecords, ids)
}
