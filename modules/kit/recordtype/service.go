package recordtype

import (
	"context"
	"reflect"

	"kontor/modules/kit/find"
	"kontor/modules/kit/list"
	"kontor/modules/kit/personal"
	"kontor/modules/kit/records"
	"kontor/modules/kit/types"
	"kontor/server/access"
	"kontor/store"
)

// Service creates, reads, changes, exports and erases the records of a type: records that users create, that count towards the quota of
// their creator, and that become inactive instead of being deleted. The service of a module embeds it.
//
// It is an interface, because every package that can see a module would compile the methods of the type behind it.
type Service[T Record] interface {
	access.Records // answers permission checks from the relations of the table

	// SetQuota limits the storage of each user. Without a quota nothing is counted.
	SetQuota(q records.Quota)
	// Create stores a new record of the caller. allow runs in the transaction before any write; nil: nothing. It returns the errors of
	// allow and apierr.QuotaExceeded.
	Create(ctx context.Context, record T, allow func(ctx context.Context, tx *store.Tx) error) (T, error)
	// Get returns a record that the caller may read. It returns Missing and apierr.NoAccess.
	Get(ctx context.Context, id string) (T, error)
	// ReadRecord is Get for the change feed.
	ReadRecord(ctx context.Context, id string) (any, error)
	// Update changes a record that the caller may update. It returns the errors of [records.Update] and apply, and apierr.QuotaExceeded.
	Update(ctx context.Context, id string, apply func(before T) (T, error)) (T, error)
	// Archive makes a record inactive if the caller may delete it. An inactive record stays unchanged. It returns the errors of
	// [records.Update].
	Archive(ctx context.Context, id string) error
	// PersonalData lists the table.
	PersonalData() []personal.Table
	// PersonalSections declares the records of a person.
	PersonalSections() []personal.Section
	// ErasePerson erases the records of a person.
	ErasePerson(ctx context.Context, tx *store.Tx, subject personal.Subject, cursor string) (string, error)
	// EraseRecord erases one record, unless it was erased before.
	EraseRecord(ctx context.Context, tx *store.Tx, id string) error
	// TextSources returns what finds the records: their words and ids.
	TextSources() []find.Source
	// FindText returns the records that match a text best, of those that the caller may read.
	FindText(ctx context.Context, text list.Words, limit int) ([]find.Hit, error)
}

type service[T Record] struct {
	access.Records

	db    *store.DB
	of    *Type[T]
	hooks Hooks[T]
	quota records.Quota
}

// Hooks are what a module adds to the operations.
type Hooks[T Record] struct {
	// Before runs in the transaction of an update before the record is written; nil: nothing.
	Before func(ctx context.Context, tx *store.Tx, before, after T) error
	// Audited runs a change with its audit entry, for records of several tables; nil: digests are computed before the transaction.
	Audited func(ctx context.Context, tx *store.Tx, action, id string, change func() error) error
}

// NewService returns the operations of a record type on a database.
func NewService[T Record](db *store.DB, t *Type[T], hooks Hooks[T]) Service[T] {
	return &service[T]{Records: records.Of(db, t.Table), db: db, of: t, hooks: hooks}
}

func (s *service[T]) SetQuota(q records.Quota) { s.quota = q }

func (s *service[T]) Create(ctx context.Context, record T, allow func(ctx context.Context, tx *store.Tx) error) (T, error) {
	id, by, now := store.NewID(), access.From(ctx).UserID, s.db.Now()
	for column, value := range map[string]any{"id": id, "created_at": now, "created_by": by, "by_staff": access.From(ctx).ActsForBank(s.of.Type),
		"modified_at": now, "modified_by": by, "version": int64(1)} {
		s.of.at(&record, column).Set(reflect.ValueOf(value))
	}
	after, answer := s.of.Answer(ctx, s.db, record)
	err := s.db.InTx(ctx, func(tx *store.Tx) error {
		if allow != nil {
			if err := allow(ctx, tx); err != nil {
				return err
			}
		}
		if err := s.quota.Charge(ctx, tx, s.of.Type, by, 1, s.of.Weight(record)); err != nil {
			return err
		}
		if err := s.of.Insert(ctx, tx, record); err != nil {
			return err
		}
		s.of.Audit(ctx, tx, s.of.Type.Name+".create", id, nil, after)
		tx.Respond(answer)
		return nil
	})
	return record, err
}

func (s *service[T]) Get(ctx context.Context, id string) (T, error) {
	return s.of.Get(ctx, s.db, id, access.Read)
}

func (s *service[T]) ReadRecord(ctx context.Context, id string) (any, error) { return s.Get(ctx, id) }

func (s *service[T]) Update(ctx context.Context, id string, apply func(before T) (T, error)) (T, error) {
	return s.change(ctx, id, ".update", access.Update, func(before T) (T, bool, error) {
		after, err := apply(before)
		return after, true, err
	})
}

func (s *service[T]) Archive(ctx context.Context, id string) error {
	_, err := s.change(ctx, id, ".archive", access.Delete, func(record T) (T, bool, error) {
		active := s.of.at(&record, "active")
		changed := active.Bool()
		active.SetBool(false)
		return record, changed, nil
	})
	return err
}

func (s *service[T]) change(ctx context.Context, id, verb string, wanted access.Permission, apply func(before T) (T, bool, error)) (T, error) {
	c := records.Edit[T]{
		Action: s.of.Type.Name + verb, Wanted: wanted,
		Apply: func(before T, now store.Time) (T, bool, error) {
			after, changed, err := apply(before)
			for column, value := range map[string]any{"modified_at": now, "modified_by": access.From(ctx).UserID, "version": s.of.at(&before, "version").Int() + 1} {
				s.of.at(&after, column).Set(reflect.ValueOf(value))
			}
			return after, changed, err
		},
		Write: func(ctx context.Context, tx *store.Tx, before, after T) error {
			if err := s.quota.Charge(ctx, tx, s.of.Type, s.of.Owner(before), 0, s.of.Weight(after)-s.of.Weight(before)); err != nil {
				return err
			}
			if s.hooks.Before != nil {
				if err := s.hooks.Before(ctx, tx, before, after); err != nil {
					return err
				}
			}
			return s.of.Write(ctx, tx, after)
		},
	}
	if s.hooks.Audited == nil {
		return records.Update(ctx, s.db, s.of.Table, id, c)
	}
	return s.changeInTx(ctx, id, c)
}

// changeInTx is [records.Update] for records of several tables, whose audit entries are made within the transaction.
func (s *service[T]) changeInTx(ctx context.Context, id string, c records.Edit[T]) (after T, err error) {
	err = s.db.InTx(ctx, func(tx *store.Tx) error {
		before, err := records.GetForUpdate(ctx, tx, s.of.Table, id, c.Wanted)
		if err != nil {
			return err
		}
		changed := false
		if after, changed, err = c.Apply(before, tx.Now()); err != nil {
			return err
		}
		if !changed {
			after = before
			return nil
		}
		return s.hooks.Audited(ctx, tx, c.Action, id, func() error { return c.Write(ctx, tx, before, after) })
	})
	return after, err
}

func (s *service[T]) PersonalData() []personal.Table {
	return []personal.Table{{Name: s.of.From, Holds: s.of.d.Holds, Sections: []string{s.of.d.Section.Name}}}
}

func (s *service[T]) PersonalSections() []personal.Section {
	return []personal.Section{personal.Records(s.of.d.Section,
		personal.Of[T]{Table: s.of.Table, All: access.Read, Condition: s.of.From + "." + s.of.d.Subject + " = $2"})}
}

func (s *service[T]) ErasePerson(ctx context.Context, tx *store.Tx, subject personal.Subject, cursor string) (string, error) {
	if subject.Kind != s.of.d.Section.Kind {
		return "", nil
	}
	unerased := "SELECT id FROM " + s.of.From + " WHERE " + s.of.d.Subject + " = $1 AND id > $2 AND erased_at IS NULL ORDER BY id LIMIT $3"
	return personal.Run(ctx, tx, cursor, personal.EachID(unerased, subject.ID, s.EraseRecord))
}

func (s *service[T]) EraseRecord(ctx context.Context, tx *store.Tx, id string) error {
	before, err := s.of.GetUnchecked(ctx, tx, id)
	if err != nil || before.Erased() {
		return err
	}
	after := before
	change := func() error {
		if _, err := tx.Exec(ctx, s.of.erase, id, tx.Now(), personal.Actor(ctx)); err != nil {
			return err
		}
		after, err = s.of.GetUnchecked(ctx, tx, id)
		return err
	}
	if s.hooks.Audited != nil {
		err = s.hooks.Audited(ctx, tx, personal.Action, id, change)
	} else if err = change(); err == nil {
		s.of.Audit(ctx, tx, personal.Action, id, before, after)
	}
	if err != nil {
		return err
	}
	return s.quota.Count(ctx, tx, s.of.Owner(before), 0, s.of.Weight(after)-s.of.Weight(before))
}

func (s *service[T]) TextSources() []find.Source {
	return []find.Source{{From: s.of.From, Columns: s.of.Columns, Where: "erased_at IS NULL", Scan: func(row records.Row, d *store.TextDocument) error {
		record, err := s.of.scan(row)
		d.ID = s.of.at(&record, "id").String()
		d.Record = d.ID
		for _, c := range s.of.columns {
			switch c.Words {
			case Title:
				d.Title = append(d.Title, find.Words(textOf(s.of.at(&record, c.Name)))...)
			case Body:
				d.Body = append(d.Body, find.Words(textOf(s.of.at(&record, c.Name)))...)
			}
		}
		d.Body = append(d.Body, types.IDWords(d.ID)...)
		return err
	}}}
}

func (s *service[T]) FindText(ctx context.Context, text list.Words, limit int) ([]find.Hit, error) {
	found, err := s.of.List.Find(ctx, s.db, text.Search(s.of.From), limit, s.of.Visible(access.From(ctx)))
	return find.Hits(found, s.of.d.Hit), err
}
