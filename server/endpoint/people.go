package endpoint

import "reflect"

// Person is what answers say about a user whom they name by id. Answers carry them in one member, people, an object by
// user id, beside the members of a record or beside the data of a list.
type Person struct {
	DisplayName string `json:"display_name" doc:"The name that the user or an administrator chose; empty for none."`
	UserName    string `json:"user_name,omitzero" doc:"The name that the user signs in with; only shown to staff."`
	Service     bool   `json:"service,omitzero" doc:"True for a service account, a program; missing for people."`
	Staff       bool   `json:"staff" doc:"Whether the user works for the bank: they or one of their roles may read all records of a type."`
}

// NamesUsers is implemented by answers that name users by id. EachUser calls add with every such id: creators, owners,
// participants, assignees, authors and actors. Empty, unknown and repeated ids are allowed and are skipped later.
//
// The answer must be a JSON object and must implement NamesUsers by value. A pointer may be nil, which is null. The rows of a list may implement it by value
// or by pointer: the list names the users of its rows.
type NamesUsers interface {
	EachUser(add func(id string))
}

// MayNameUsers reports whether an answer is of a type that names users, or whose rows do.
func MayNameUsers(body any) bool {
	if page, rows := body.(RowPage); rows {
		body = reflect.Zero(reflect.PointerTo(page.Rows().Type())).Interface() // the pointer has the methods of the value, too
	}
	_, names := body.(NamesUsers)
	return names
}

// EachUser calls add with the users whom an answer or its rows name.
func EachUser(body any, add func(id string)) {
	page, listed := body.(RowPage)
	if !listed {
		body.(NamesUsers).EachUser(add)
		return
	}
	rows := page.Rows()
	for i := range rows.Len() {
		rows.At(i).(NamesUsers).EachUser(add)
	}
}

// TypeNamesUsers reports whether the answers of a type may name users, for the API document.
func TypeNamesUsers(out reflect.Type) bool {
	return out != nil && out.Kind() != reflect.Interface && MayNameUsers(reflect.Zero(out).Interface())
}
