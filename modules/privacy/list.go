package privacy

import (
	"context"
	"errors"

	"kontor/modules/kit/list"
	"kontor/server/access"
	"kontor/server/apierr"
	"kontor/store"
)

// ListInput asks for a page.
type ListInput struct {
	Query list.Params `query:"*"`
}

// requireStaff returns apierr.NoAccess unless the caller may delete all customers.
func requireStaff(ctx context.Context) error {
	if !access.From(ctx).May(access.Customers, access.Delete) {
		return apierr.NoAccess
	}
	return nil
}

// List returns a page of erasures.
func (s *Service) List(ctx context.Context, in ListInput) (list.Page[Erasure], error) {
	if err := requireStaff(ctx); err != nil {
		return list.Page[Erasure]{}, err
	}
	page, err := erasureList.Page(ctx, s.db, in.Query)
	for i := range page.Data.Rows {
		page.Data.Rows[i] = s.withLeft(ctx, page.Data.Rows[i])
	}
	return page, err
}

// ListDue returns a page of the customers whose data may be erased now, because the retention period has ended.
func (s *Service) ListDue(ctx context.Context, in ListInput) (list.Page[Due], error) {
	if err := requireStaff(ctx); err != nil {
		return list.Page[Due]{}, err
	}
	today := s.today(s.db)
	ended := store.TimeOf(today.Start().AddDate(-s.RetentionYears, 0, 0)) // the last day must be over
	return dueList.Page(ctx, s.db, in.Query, list.Where{SQL: dueCondition, Args: []any{ended - 1, today.String()}})
}

// Get returns an erasure. It returns apierr.ErasureNotFound.
func (s *Service) Get(ctx context.Context, in OneInput) (Erasure, error) {
	if err := requireStaff(ctx); err != nil {
		return Erasure{}, err
	}
	e, err := scanErasure(s.db.QueryRow(ctx, selectErasureByID, in.ID))
	if errors.Is(err, store.ErrNotFound) {
		return Erasure{}, apierr.ErasureNotFound
	}
	return s.withLeft(ctx, e), err
}
