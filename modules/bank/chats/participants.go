package chats

import (
	"context"
	"errors"
	"strconv"

	"kontor/server/access"
	"kontor/server/apierr"
	"kontor/server/endpoint"
	"kontor/store"
)

// AddParticipants adds users to a chat. It returns apierr.ChatNotFound, apierr.NoAccess, apierr.ChatFixedParticipants for a
// direct chat, apierr.ChatParticipantExists, apierr.ChatFull and, for users who do not exist or are not active,
// apierr.InvalidInput.
func (s *Service) AddParticipants(ctx context.Context, in AddInput) (Chat, error) {
	var chat Chat
	caller := access.From(ctx).UserID
	err := s.db.InTx(ctx, func(tx *store.Tx) error {
		c, err := getForParticipantChange(ctx, tx, in.ID)
		if err != nil {
			return err
		}
		if _, err := chatTable.Get(ctx, tx, in.ID, access.Read); err != nil {
			return err // participants read the chat: callers give no more than they hold
		}
		added := uniqueExcept(in.participants, "")
		if err := s.checkAdded(ctx, tx, c, added, in.participants); err != nil {
			return err
		}
		before, err := readChat(ctx, tx, c.id)
		if err != nil {
			return err
		}
		for _, userID := range added {
			p := participant{userID: userID, readSeq: c.lastSeq}
			if err := insertParticipant(ctx, tx, c.id, p, caller); err != nil {
				return err
			}
			c.participants = append(c.participants, p)
		}
		for _, userID := range added {
			if err := s.writeSystemMessage(ctx, tx, c, joined, userID); err != nil {
				return err
			}
		}
		if err := chatProof.Audit(ctx, tx, "chats.participants.add", c.id, before); err != nil {
			return err
		}
		if chat, err = s.view(ctx, tx, c.id); err != nil {
			return err
		}
		tx.Respond(chat)
		return nil
	})
	return chat, err
}

// checkAdded checks the users to add to a chat. given are their ids as the request names them, for the paths of errors.
func (s *Service) checkAdded(ctx context.Context, tx *store.Tx, c chatState, added, given []string) error {
	for _, userID := range added {
		if c.has(userID) {
			return apierr.ChatParticipantExists.Detail("userId", userID)
		}
	}
	if len(c.participants)+len(added) > MaxParticipants {
		return apierr.ChatFull.With(apierr.Args{"Max": MaxParticipants})
	}
	return s.checkActive(ctx, tx, given)
}

// RemoveParticipant removes a user from a chat: the caller themselves, or another if the caller is the creator. It returns
// apierr.ChatNotFound, apierr.NoAccess, apierr.ChatFixedParticipants for a direct chat and apierr.ChatParticipantNotFound.
func (s *Service) RemoveParticipant(ctx context.Context, in RemoveInput) (endpoint.Message, error) {
	caller := access.From(ctx)
	event := left
	if in.UserID != caller.UserID {
		event = removed
	}
	err := s.db.InTx(ctx, func(tx *store.Tx) error {
		c, err := getForParticipantChange(ctx, tx, in.ID)
		if err != nil {
			return err
		}
		if event == removed {
			if err := checkMayRemoveOthers(ctx, tx, c); err != nil {
				return err
			}
		}
		if !c.has(in.UserID) {
			return apierr.ChatParticipantNotFound
		}
		before, err := readChat(ctx, tx, c.id)
		if err != nil {
			return err
		}
		if err := deleteParticipant(ctx, tx, c.id, in.UserID); err != nil {
			return err
		}
		c.participants = c.others(in.UserID)
		if err := s.writeSystemMessage(ctx, tx, c, event, in.UserID); err != nil {
			return err
		}
		if err := chatProof.Audit(ctx, tx, "chats.participants.remove", c.id, before); err != nil {
			return err
		}
		// Mark the removed user's notifications about the chat as read: their links no longer work.
		return s.notifications.MarkRead(ctx, tx, in.UserID, access.Chats, c.id)
	})
	return endpoint.Confirm(ctx, s.texts, "chats.done_"+event), err
}

// checkMayRemoveOthers returns nil for the creator while they take part, and for callers with a grant to update the chat or
// all chats. It returns apierr.NoAccess for others, including a creator who has left.
func checkMayRemoveOthers(ctx context.Context, tx *store.Tx, c chatState) error {
	if caller := access.From(ctx).UserID; caller == c.createdBy && c.has(caller) {
		return nil
	}
	granted, err := chatTable.Granted(ctx, tx, c.id, access.Update)
	if err == nil && !granted {
		err = apierr.NoAccess
	}
	return err
}

// getForParticipantChange reads a chat whose participants the caller wants to change.
func getForParticipantChange(ctx context.Context, tx *store.Tx, id string) (chatState, error) {
	c, err := chatTable.Get(ctx, tx, id, access.Update)
	if err == nil && c.kind == Direct {
		err = apierr.ChatFixedParticipants
	}
	if err == nil && c.kind == Support && checkTeam(ctx) != nil {
		// Those who write to the bank neither choose who answers, nor bring others into the conversation.
		switch _, found := selectThread(ctx, tx, id); {
		case found == nil:
			err = apierr.ChatFixedParticipants
		case !errors.Is(found, store.ErrNotFound):
			err = found
		}
	}
	return c, err
}

// checkActive rejects users who do not exist or are not active, all at once.
func (s *Service) checkActive(ctx context.Context, tx *store.Tx, ids []string) error {
	active, err := s.directory.Active(ctx, tx, ids...)
	if err != nil {
		return err
	}
	var problems apierr.Fields
	for i, id := range ids {
		if !active[id] {
			problems.Add("participants."+strconv.Itoa(i), "invalid.unknown_record")
		}
	}
	return problems.Err()
}
