// Package authzen answers the OpenID AuthZEN Authorization API 1.0: other programs of the bank ask what a user may do, one by one, in
// batches and by search.
//
// The module only translates. [Decider] decides, which is the module rbac: subjects are users and service accounts, resources are
// records by type and id, actions are permissions. Unknown ones are denied. Of the standard it serves Basic Core, Batch Core, Search
// Core and Discovery: properties and context are read and have no influence, which the metadata say.
//
// All callers may ask about themselves. To ask about others takes the permission read_all on grants. The package owns no table and
// writes nothing.
package authzen

import (
	"context"
	"strings"

	"kontor/server/access"
)

// The types of subjects.
const (
	user           = "user"
	serviceAccount = "service_account"
)

// kinds are the kinds of users of the directory, by type of subject.
var kinds = map[string]string{user: "person", serviceAccount: "service"}

// Question asks whether a subject has a permission on a record.
type Question struct{ RecType, Permission, RecID string }

// Answer is the decision about a question, with the source of the permission.
type Answer struct {
	Allowed          bool
	Source, SourceID string
	Missing          bool
}

// Decider decides about records, of Kontor and of other applications.
type Decider interface {
	// Ask decides questions about one subject, in their order.
	Ask(ctx context.Context, asking, subject *access.Caller, questions []Question) ([]Answer, error)
	// MayAskAboutOthers reports whether the caller may ask about other subjects.
	MayAskAboutOthers(asking *access.Caller) bool
	// Subjects returns the ids of the active users of a kind for whom a question is allowed and whom the caller may list, in their order.
	Subjects(ctx context.Context, asking *access.Caller, kind string, q Question, after string, limit int) ([]string, error)
	// Resources returns the ids of records of a type on which the subject has a permission, in their order.
	Resources(ctx context.Context, asking, subject *access.Caller, recType, permission, after string, limit int) ([]string, error)
	// Actions returns the permissions of a record type; none for an unknown type.
	Actions(ctx context.Context, recType string) ([]string, error)
}

// Directory finds users.
type Directory interface {
	// FindSubject returns the active user of a kind by id or, for people, by a user name. ok is false for any other text.
	FindSubject(ctx context.Context, kind, ref string) (caller *access.Caller, ok bool, err error)
	// UserNames returns the oldest user name of each user who has one, by id.
	UserNames(ctx context.Context, ids []string) (map[string]string, error)
}

// Options are the settings of the module.
type Options struct {
	// BaseURL is the address of this installation, under which other programs reach it.
	BaseURL string
	// Policy decides for subjects.
	Policy *access.Current
}

// Service is the module.
type Service struct {
	decider   Decider
	directory Directory
	base      string
	policy    *access.Current
}

// New returns the module.
func New(decider Decider, directory Directory, o Options) *Service {
	return &Service{decider: decider, directory: directory, base: strings.TrimRight(o.BaseURL, "/"), policy: o.Policy}
}
