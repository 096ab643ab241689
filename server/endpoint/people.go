package endpoint

// Person is what answers say about a user whom they name by id. Answers carry them in one member, people, an object by
// user id, beside the members of a record or beside the data of a list.
type Person struct {
	DisplayName string `json:"display_name" doc:"The name that the user or an administrator chose; empty for none."`
	UserName    string `json:"user_name,omitzero" doc:"The name that the user signs in with; only shown to staff."`
	Staff       bool   `json:"staff" doc:"Whether the user works for the bank: they or one of their roles may read all records of a type."`
}

// NamesUsers is implemented by answers that name users by id. EachUser calls add with every such id: creators, owners,
// participants, assignees, authors and actors. Empty, unknown and repeated ids are allowed and are skipped later.
type NamesUsers interface {
	EachUser(add func(id string))
}
