package server

import (
	"context"
	"reflect"
	"sync"

	"github.com/go-json-experiment/json/jsontext"

	"kontor/server/endpoint"
)

// People resolves the users whom answers name.
type People interface {
	// People returns the users with the ids, by id. Unknown ids are missing from the result. It is called once for each
	// answer that names users, with distinct ids that are not empty. UserName must be empty unless the caller of the context
	// is staff. It must not keep ids, and it must read the database with store.QuerierFrom: it may run in a transaction.
	People(ctx context.Context, ids []string) (map[string]endpoint.Person, error)
}

// peopleMember begins the member of answers that holds the users whom they name.
const peopleMember = `"people":`

// peopleOf returns the JSON object of the users whom an answer names, or nil for an answer that names none. Names are an
// addition: when they cannot be read, the answer goes without them, since the change that it reports may be stored already.
func (s *Server) peopleOf(ctx context.Context, body any) []byte {
	if s.People == nil || !endpoint.MayNameUsers(body) || isNil(body) {
		return nil
	}
	named := namedUsers.Get().(*userIDs)
	defer named.free()
	body.(endpoint.NamesUsers).EachUser(named.add)
	if len(named.ids) == 0 {
		return nil
	}
	people, err := s.People.People(ctx, named.ids)
	if err == nil {
		var object []byte
		if object, err = encodePeople(named.ids, people); err == nil {
			return object
		}
	}
	s.Log.Warn("an answer goes without the names of its users", "request_id", endpoint.Of(ctx).RequestID, "cause", err)
	return nil
}

// personBytes is the usual length of a user in the member people.
const personBytes = 120

// encodePeople returns the JSON object of the known users, in the order of the ids. A large chat names hundreds: a general
// encoder of maps took most of the time of its answer.
func encodePeople(ids []string, people map[string]endpoint.Person) ([]byte, error) {
	object := append(make([]byte, 0, personBytes*(len(people)+1)), '{')
	for _, id := range ids {
		p, known := people[id]
		if !known {
			continue
		}
		if len(object) > 1 {
			object = append(object, ',')
		}
		var err error
		if object, err = jsontext.AppendQuote(object, id); err != nil {
			return nil, err
		}
		if object, err = p.AppendJSON(append(object, ':')); err != nil {
			return nil, err
		}
	}
	return append(object, '}'), nil
}

// isNil reports whether an answer is a nil pointer, which is written as null and refers to no users.
func isNil(body any) bool {
	value := reflect.ValueOf(body)
	return value.Kind() == reflect.Pointer && value.IsNil()
}

// appendPeople appends the member people to the JSON of an answer, in place if the capacity suffices. It does not change
// text that is no JSON object.
func appendPeople(text, people []byte) []byte {
	if people == nil || len(text) < 2 || text[0] != '{' {
		return text
	}
	text = text[:len(text)-1]
	if len(text) > 1 {
		text = append(text, ',')
	}
	text = append(text, peopleMember...)
	return append(append(text, people...), '}')
}

// userIDs gathers the distinct ids of an answer.
type userIDs struct {
	ids  []string
	seen map[string]struct{}
	add  func(id string) // the method insert, bound once
}

var namedUsers = sync.Pool{New: func() any {
	u := &userIDs{seen: map[string]struct{}{}}
	u.add = u.insert
	return u
}}

func (u *userIDs) insert(id string) {
	if _, known := u.seen[id]; known || id == "" {
		return
	}
	u.seen[id] = struct{}{}
	u.ids = append(u.ids, id)
}

func (u *userIDs) free() {
	clear(u.seen)
	clear(u.ids) // holds no strings of an answer
	u.ids = u.ids[:0]
	namedUsers.Put(u)
}
