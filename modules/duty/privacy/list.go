package privacy

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"kontor/modules/kit/list"
	"kontor/modules/kit/personal"
	"kontor/modules/kit/types"
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

// ListDue returns a page of the customers whose data may be erased now, because the retention period has ended. It lists none that the
// erasure would reject: see relationship.
func (s *Service) ListDue(ctx context.Context, in ListInput) (list.Page[Due], error) {
	if err := requireStaff(ctx); err != nil {
		return list.Page[Due]{}, err
	}
	today := s.today(s.db)
	due := []any{s.endsExpired(today), today.String(), dayLength}
	where := list.Where{SQL: dueCondition, Args: due, Tables: []string{"customers.id", "kyc_changes.customer_id", "kyc_decisions.customer_id"}}
	linked, err := s.dueButHeld(ctx, due)
	if err != nil {
		return list.Page[Due]{}, err
	}
	if len(linked) == 0 {
		return dueList.Page(ctx, s.db, in.Query, where)
	}
	return dueList.Page(ctx, s.db, in.Query, where, list.Where{SQL: "customer_id NOT IN (" + store.In(1, len(linked)) + ")", Args: store.AppendIn(nil, linked)})
}

// dayLength is the number of milliseconds in a day.
const dayLength = int64(24 * time.Hour / time.Millisecond)

// endsExpired returns the latest end of a relationship whose retention period is over on a day.
func (s *Service) endsExpired(today types.Date) store.Time {
	day := types.DateOf(today.Start().AddDate(-s.RetentionYears, 0, 0)).AddDays(1)
	for {
		last := store.TimeOf(day.Start()) - 1
		if s.retentionUntil(last).Before(today) {
			return last
		}
		day = day.AddDays(-1)
	}
}

// dueButHeld returns the customers that are due, but whose person has another customer under a hold.
func (s *Service) dueButHeld(ctx context.Context, due []any) ([]string, error) {
	persons, err := s.heldPersons(ctx, s.db)
	if err != nil || len(persons) == 0 {
		return nil, err
	}
	candidates, err := store.All(ctx, s.db, store.Text, selectDue, due...)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(candidates, func(id string) bool {
		customer, failure := s.linkedHold(ctx, s.db, personal.Subject{Kind: personal.Customer, ID: id}, persons)
		err = cmp.Or(err, failure)
		return customer == ""
	}), err
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
