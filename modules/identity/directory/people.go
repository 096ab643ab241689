package directory

import (
	"context"
	"errors"
	"slices"
	"strings"

	"kontor/modules/kit/revocable"
	"kontor/modules/kit/types"
	"kontor/server/access"
	"kontor/server/endpoint"
	"kontor/store"
)

// selectPeople reads one row for each role of a user, at least one. The sign-in name is the user name, else the e-mail
// address, else the phone number: the digit in front of the value orders them and is cut off.
const selectPeople = `
	SELECT u.id, u.display_name, u.kind = 'service', COALESCE(r.role_id, ''),
		COALESCE((
			SELECT min(CASE c.type WHEN 'username' THEN '1' WHEN 'email' THEN '2' ELSE '3' END || c.value)
			FROM credentials c WHERE c.user_id = u.id AND c.validated = TRUE), '')
	FROM users u
	LEFT JOIN held_roles r ON r.user_id = u.id
	WHERE u.id IN (%s)`

// person is what [Service.People] keeps of a user. Whether they are staff depends on the policy and is decided each time.
type person struct {
	known       bool // false for an id that no user has
	displayName string
	signInName  string
	service     bool
	roles       []string
}

// People returns the names of users by id, for answers that mention users. Sign-in names are only included for callers who
// are staff. Ids of the system and unknown ids are missing from the result. Users that are not in memory are read with one
// statement for 64 ids.
func (s *Service) People(ctx context.Context, ids []string) (map[string]endpoint.Person, error) {
	policy, toStaff := s.Policy.Load(), access.From(ctx).Staff()
	people := make(map[string]endpoint.Person, len(ids))
	add := func(id string, p person) {
		if !p.known {
			return
		}
		shown := endpoint.Person{DisplayName: p.displayName, Service: p.service, Staff: policy.Staff(id) || slices.ContainsFunc(p.roles, policy.Staff)}
		if toStaff {
			shown.UserName = p.signInName
		}
		people[id] = shown
	}
	var missing []string
	for _, id := range ids {
		if id == "" || id == store.NilID {
			continue
		}
		if p, ok := s.people.Get(id); ok && p.read.Valid() {
			add(id, p.person)
		} else if !slices.Contains(missing, id) {
			missing = append(missing, id)
		}
	}
	if len(missing) == 0 {
		return people, nil
	}
	read, err := s.readPeople(ctx, missing)
	for id, p := range read {
		add(id, p)
	}
	return people, err
}

// readPeople reads people from the database and keeps them in memory. Within a transaction it keeps nothing: what it reads
// there may never be committed.
func (s *Service) readPeople(ctx context.Context, ids []string) (map[string]person, error) {
	before := make([]revocable.Generation, len(ids))
	for i, id := range ids {
		before[i] = s.changes.Now(id)
	}
	read := make(map[string]person, len(ids))
	q := store.QuerierFrom(ctx, s.db)
	err := store.EachOf(ctx, q, func(row store.Scanner) error {
		var id, displayName, role, signInName string
		var service bool
		if err := row.Scan(&id, &displayName, &service, &role, &signInName); err != nil {
			return err
		}
		p := read[id]
		p.known, p.displayName, p.service = true, displayName, service
		if signInName != "" {
			p.signInName = signInName[1:]
		}
		if role != "" {
			p.roles = append(p.roles, role)
		}
		read[id] = p
		return nil
	}, selectPeople, ids)
	if err != nil {
		return nil, err
	}
	if q != store.Querier(s.db) {
		return read, nil
	}
	for i, id := range ids {
		s.people.Put(strings.Clone(id), knownPerson{read[id], before[i]}) // the id may belong to a request
	}
	return read, nil
}

// invalidate drops a user from the cache of every node: the transaction changes their name, roles or sign-in names.
func (s *Service) invalidate(tx *store.Tx, userID string) { tx.Announce(s.peopleTopic, userID) }

// maxPeople is how many people are kept in memory.
const maxPeople = 16 << 10

// knownPerson is a person in memory, with the generation from before the read.
type knownPerson struct {
	person
	read revocable.Generation
}

const (
	selectSubject = `SELECT id FROM users WHERE id = $1 AND kind = $2 AND status = 'active'`

	selectSubjectByName = `
		SELECT u.id FROM credentials c JOIN users u ON u.id = c.user_id
		WHERE c.value_key = $1 AND c.type = 'username' AND c.validated = TRUE AND u.kind = $2 AND u.status = 'active'`

	selectOwnNames = `SELECT value_key FROM credentials WHERE user_id = $1 AND type = 'username' AND validated = TRUE`

	selectUserNames = `
		SELECT user_id, value FROM credentials
		WHERE user_id IN (%s) AND type = 'username' AND validated = TRUE ORDER BY created_at, id`
)

// FindSubject returns the active user of a kind with their roles, by id or by one of their user names. ok is false for any other text.
func (s *Service) FindSubject(ctx context.Context, kind, ref string) (caller *access.Caller, ok bool, err error) {
	statement, key := selectSubjectByName, ""
	if id, err := types.ParseID(ref); err == nil {
		statement, key = selectSubject, id
	} else if name, err := parseIdentifier(Username, ref); err == nil {
		key = name.key
	} else {
		return nil, false, nil
	}
	var id string
	err = s.db.QueryRow(ctx, statement, key, kind).Scan(&id)
	if errors.Is(err, store.ErrNotFound) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, err
	}
	roles, err := s.RolesOf(ctx, s.db, id)
	return &access.Caller{UserID: id, Roles: roles}, err == nil, err
}

// IsCalled reports whether a text is the id or one of the user names of a user. It reads nothing about others: the time that it takes does
// not depend on whether another user has the name.
func (s *Service) IsCalled(ctx context.Context, userID, ref string) (bool, error) {
	names, err := store.All(ctx, s.db, store.Text, selectOwnNames, userID)
	if err != nil {
		return false, err
	}
	if id, err := types.ParseID(ref); err == nil {
		return id == userID, nil
	}
	name, err := parseIdentifier(Username, ref)
	return err == nil && slices.Contains(names, name.key), nil
}

// UserNames returns the oldest user name of each user who has one, by id.
func (s *Service) UserNames(ctx context.Context, ids []string) (map[string]string, error) {
	names := map[string]string{}
	err := store.EachOf(ctx, s.db, func(row store.Scanner) error {
		var id, name string
		if err := row.Scan(&id, &name); err != nil {
			return err
		}
		if names[id] == "" {
			names[id] = name
		}
		return nil
	}, selectUserNames, ids)
	return names, err
}
