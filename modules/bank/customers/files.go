package customers

import (
	"context"
	"errors"

	"kontor/modules/kit/attachment"
	"kontor/server/access"
	"kontor/server/apierr"
	"kontor/store"
)

const selectDocumentOf = `SELECT 1 FROM kyc_documents WHERE id = $1 AND customer_id = $2`

// selectDecidedSince finds a decision of a reviewer, or an expiry, from a time on.
const selectDecidedSince = `
	SELECT 1 FROM kyc_changes
	WHERE customer_id = $1 AND changed_at >= $2 AND from_status <> to_status AND to_status IN ('verified', 'rejected', 'action_required', 'expired')
	LIMIT 1`

// AllowFile decides about the evidence of documents: callers who may read the customer may read it, those who may update the customer
// may add to it. Uploaders may delete a file until a reviewer begins to review it; from then on only callers with the permission to delete
// the customer may, which being its creator does not give.
func (s *Service) AllowFile(ctx context.Context, q store.Querier, target attachment.Target, wanted access.Permission, file *attachment.File) error {
	if wanted == access.Read {
		return s.Allow(ctx, q, target.Parent, access.Read)
	}
	c, err := table.Get(ctx, q, target.Parent, access.Update)
	if err != nil {
		return err
	}
	if c.Erased() {
		return apierr.RecordErased
	}
	if wanted == access.Create {
		exists, err := found(ctx, q, selectDocumentOf, target.Record, target.Parent)
		if err == nil && !exists {
			err = apierr.FileRecordNotFound
		}
		return err
	}
	if may, err := table.Granted(ctx, q, c.ID, access.Delete); err != nil || may {
		return err
	}
	if file.UploadedBy != access.From(ctx).UserID {
		return apierr.NoAccess
	}
	decided, err := found(ctx, q, selectDecidedSince, c.ID, file.CreatedAt)
	if err == nil && (decided || c.KYCStatus == InReview) {
		err = apierr.FileLocked
	}
	return err
}

// found reports whether a statement has a row.
func found(ctx context.Context, q store.Querier, statement string, args ...any) (bool, error) {
	var one int
	err := q.QueryRow(ctx, statement, args...).Scan(&one)
	if errors.Is(err, store.ErrNotFound) {
		return false, nil
	}
	return err == nil, err
}
