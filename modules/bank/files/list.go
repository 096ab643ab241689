package files

import (
	"context"
	"math"

	"kontor/modules/kit/attachment"
	"kontor/server/access"
	"kontor/server/apierr"
	"kontor/store"
)

// maxListed is the number of files in one answer.
const maxListed = 200

// Files are files of a record, the newest first.
type Files struct {
	Files   []StoredFile `json:"files"`
	HasMore bool         `json:"has_more" doc:"There are older files; ask for those before the last one."`
}

// EachUser names the uploaders.
func (l Files) EachUser(add func(id string)) {
	for _, f := range l.Files {
		f.EachUser(add)
	}
}

type oneInput struct {
	ID string `path:"id"`
}

type customerInput struct {
	ID     string `path:"id"`
	Before string `query:"before" format:"uuid" doc:"Id of a file: return older ones."`
}

type chatInput struct {
	ID     string `path:"id"`
	Before string `query:"before" format:"uuid" doc:"Id of a file: return older ones."`
}

type taskInput struct {
	CustomerID string `path:"customer_id"`
	ID         string `path:"id"`
}

// get returns a file without its content.
func (s *Service) get(ctx context.Context, in oneInput) (StoredFile, error) {
	return s.find(ctx, s.db, in.ID, access.Read)
}

// ofCustomer returns the evidence of a customer: the files of all documents.
func (s *Service) ofCustomer(ctx context.Context, in customerInput) (Files, error) {
	return s.ofParent(ctx, attachment.Target{Kind: attachment.Document, Parent: in.ID}, in.Before)
}

// ofChat returns the files of all messages of a chat.
func (s *Service) ofChat(ctx context.Context, in chatInput) (Files, error) {
	return s.ofParent(ctx, attachment.Target{Kind: attachment.Message, Parent: in.ID}, in.Before)
}

// ofTask returns the files of a task.
func (s *Service) ofTask(ctx context.Context, in taskInput) (Files, error) {
	target := attachment.Target{Kind: attachment.Task, Parent: in.CustomerID, Record: in.ID}
	if err := s.allow(ctx, s.db, target, access.Read, nil); err != nil {
		return Files{}, err
	}
	found, err := store.All(ctx, s.db, scanFile, selectOfRecord, target.Record, string(target.Kind), target.Parent, access.From(ctx).UserID)
	return listed(found), err
}

// ofParent returns a page of the files of all records of a customer or chat.
func (s *Service) ofParent(ctx context.Context, target attachment.Target, before string) (Files, error) {
	if err := s.allow(ctx, s.db, target, access.Read, nil); err != nil {
		return Files{}, err
	}
	at := store.Time(math.MaxInt64)
	if before != "" {
		last, err := scanFile(s.db.QueryRow(ctx, selectOne, before))
		if err != nil || last.ParentID != target.Parent || last.RecordType != target.Kind {
			return Files{}, apierr.Invalid("before", "invalid.uuid")
		}
		at = last.CreatedAt
	}
	found, err := store.All(ctx, s.db, scanFile, selectOfParent, target.Parent, string(target.Kind), access.From(ctx).UserID, at, before, maxListed+1)
	return listed(found), err
}

func listed(found []StoredFile) Files {
	if found == nil {
		found = []StoredFile{}
	}
	return Files{Files: found[:min(len(found), maxListed)], HasMore: len(found) > maxListed}
}
