// Package attachment declares what files can belong to, and how the modules of these records decide about their files.
//
// The right on a file is the right on its record. So the module files asks the module of the record, before a request and again in
// the transaction of each change.
package attachment

import (
	"context"

	"kontor/server/access"
	"kontor/store"
)

// Kind is a kind of records that can have files. Its text is the type of the records in the audit trail.
type Kind string

// The kinds.
const (
	Document Kind = "kyc_documents" // of a customer
	Message  Kind = "chat_messages" // of a chat
	Task     Kind = "tasks"         // about a customer
)

// Values returns all kinds.
func (Kind) Values() []string { return []string{string(Document), string(Message), string(Task)} }

// Target is the record that a file belongs to.
type Target struct {
	Kind   Kind
	Parent string // the customer of a document or task, the chat of a message
	Record string // empty where all records of the parent are meant
}

// File is what a decision about one file depends on.
type File struct {
	UploadedBy string
	CreatedAt  store.Time
}

// Holder decides about the files of its records.
type Holder interface {
	// AllowFile checks that the caller may read files of a record ([access.Read]), add one ([access.Create]) or delete one
	// ([access.Delete]). file is nil except for a deletion. It returns the errors of the record: that it does not exist, that the
	// caller has no access, or that it does not change any more.
	AllowFile(ctx context.Context, q store.Querier, target Target, wanted access.Permission, file *File) error
}

// Watcher is a holder whose records depend on their files.
type Watcher interface {
	// FilesChanged is called in each transaction that adds a file to a record or deletes one, as far as others can see it.
	FilesChanged(ctx context.Context, tx *store.Tx, target Target, added bool) error
}

// Remover deletes the files of a record that is deleted.
type Remover interface {
	// RemoveFiles deletes all files of a record in the transaction of its deletion. Their content cannot be read from then on.
	RemoveFiles(ctx context.Context, tx *store.Tx, target Target) error
}
