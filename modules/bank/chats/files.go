package chats

import (
	"context"
	"errors"

	"kontor/modules/kit/attachment"
	"kontor/server/access"
	"kontor/server/apierr"
	"kontor/store"
)

const selectSender = `SELECT sender_id, type FROM chat_messages WHERE id = $1 AND chat_id = $2`

// AllowFile decides about the files of messages: callers who may read the chat, or answer it from the inbox, may read them. Participants may add files to their own
// messages, and delete them. Others need the permission to delete the chat.
func (s *Service) AllowFile(ctx context.Context, q store.Querier, target attachment.Target, wanted access.Permission, file *attachment.File) error {
	caller := access.From(ctx).UserID
	if wanted == access.Read {
		c, err := chatTable.Get(ctx, q, target.Parent, access.Read)
		if errors.Is(err, apierr.NoAccess) {
			c, err = chatOfThread(ctx, q, target.Parent)
		}
		if err == nil && !c.has(caller) {
			reportReading(ctx, c.id)
		}
		return err
	}
	c, err := chatTable.GetUnchecked(ctx, q, target.Parent)
	if err != nil {
		return err
	}
	if wanted == access.Delete {
		if may, err := chatTable.Granted(ctx, q, c.id, access.Delete); err != nil || may {
			return err
		}
		if !c.has(caller) || file.UploadedBy != caller {
			return apierr.NoAccess
		}
		return nil
	}
	active, err := s.directory.Active(ctx, q, caller)
	if err != nil {
		return err
	}
	if !c.has(caller) || !active[caller] {
		return apierr.NoAccess
	}
	return allowSender(ctx, q, target, caller)
}

// allowSender checks that a message exists in the chat and was written by the caller.
func allowSender(ctx context.Context, q store.Querier, target attachment.Target, caller string) error {
	var sender, kind string
	err := q.QueryRow(ctx, selectSender, target.Record, target.Parent).Scan(&sender, &kind)
	switch {
	case errors.Is(err, store.ErrNotFound):
		return apierr.FileRecordNotFound
	case err == nil && (sender != caller || MessageType(kind) != Text):
		return apierr.NoAccess
	}
	return err
}
