package directory

import (
	"context"

	"kontor/modules/kit/find"
	"kontor/modules/kit/list"
	"kontor/modules/kit/records"
	"kontor/modules/kit/types"
	"kontor/server/access"
	"kontor/store"
)

// The kinds of documents that find users.
const (
	userSource       = "users"
	credentialSource = "credentials"
)

const (
	selectUserTexts = `SELECT id, display_name FROM users WHERE id IN (%s) AND erased_at IS NULL`

	selectUserTextIDs = `SELECT id FROM users WHERE id > $1 ORDER BY id LIMIT $2`

	selectCredentialTexts = `SELECT id, user_id, type, value FROM credentials WHERE id IN (%s)`

	selectCredentialTextIDs = `SELECT id FROM credentials WHERE id > $1 ORDER BY id LIMIT $2`
)

// TextSources returns what finds users: display name and id, and for callers who may read all credentials their e-mail addresses,
// telephone numbers and user names.
func (s *Service) TextSources() []find.Source {
	return []find.Source{
		{Name: userSource, IDs: selectUserTextIDs, Read: readUserTexts},
		{Name: credentialSource, IDs: selectCredentialTextIDs, Read: readCredentialTexts},
	}
}

func readUserTexts(ctx context.Context, q store.Querier, ids []string) ([]store.TextDocument, error) {
	return find.Documents(ctx, q, selectUserTexts, ids, func(row records.Row) (store.TextDocument, error) {
		var name string
		d := store.TextDocument{Source: userSource}
		err := row.Scan(&d.ID, &name)
		d.Record, d.Title, d.Body = d.ID, find.Words(name), types.IDWords(d.ID)
		return d, err
	})
}

func readCredentialTexts(ctx context.Context, q store.Querier, ids []string) ([]store.TextDocument, error) {
	return find.Documents(ctx, q, selectCredentialTexts, ids, func(row records.Row) (store.TextDocument, error) {
		var kind, value string
		d := store.TextDocument{Source: credentialSource}
		err := row.Scan(&d.ID, &d.Record, &kind, &value)
		if d.Body = find.Words(value); kind == "phone" {
			d.Body = types.PhoneWords(value)
		}
		return d, err
	})
}

// textSources returns the kinds of documents that the caller may search.
func textSources(caller *access.Caller) []string {
	if caller.May(access.Credentials, access.ReadAll) {
		return []string{userSource, credentialSource}
	}
	return []string{userSource}
}

// FindText returns the users that match a text best, of those that the caller may read.
func (s *Service) FindText(ctx context.Context, text list.Words, limit int) ([]find.Hit, error) {
	caller := access.From(ctx)
	found, err := userList.Find(ctx, s.db, text.Search(textSources(caller)...), limit, userTable.Visible(caller))
	hits := make([]find.Hit, len(found))
	for i, one := range found {
		hits[i] = find.Hit{ID: one.ID, Title: one.Row.DisplayName, Subtitle: one.Row.Status, Score: one.Score}
	}
	return hits, err
}

// FillSortKeys computes the sort keys of names that earlier versions have stored. It runs regularly.
func (s *Service) FillSortKeys(ctx context.Context) error {
	return records.FillSortKeys(ctx, s.db, records.SortKeys{From: "users", Names: []string{"display_name"}})
}
