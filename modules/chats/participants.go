package chats

import (
	"context"
	"net/http"
	"strconv"

	"kontor/server/access"
	"kontor/server/apierr"
	"kontor/server/endpoint"
	"kontor/store"
)

// Add lets further users take part. It returns apierr.ChatNotFound, apierr.NoAccess, apierr.ChatFixedParticipants for a
// direct chat, apierr.ChatParticipantExists, apierr.ChatFull and, for users who do not exist or are not active,
// apierr.InvalidInput.
func (s *Service) Add(ctx context.Context, in AddInput) (Chat, error) {
	var chat Chat
	caller := access.From(ctx).UserID
	err := s.db.InTx(ctx, func(tx *store.Tx) error {
		c, err := changeable(ctx, tx, in.ID)
		if err != nil {
			return err
		}
		added := without(in.participants, "")
		for _, userID := range added {
			if c.has(userID) {
				return apierr.ChatParticipantExists.Detail("userId", userID)
			}
		}
		if len(c.positions)+len(added) > MaxParticipants {
			return apierr.ChatFull.With(apierr.Args{"Max": MaxParticipants})
		}
		if err := checkActive(ctx, tx, in.participants); err != nil {
			return err
		}
		before, err := readChat(ctx, tx, c.id)
		if err != nil {
			return err
		}
		for _, userID := range added {
			p := position{userID: userID, readSeq: c.lastSeq}
			if err := insertParticipant(ctx, tx, c.id, p, caller); err != nil {
				return err
			}
			c.positions = append(c.positions, p)
		}
		for _, userID := range added {
			if err := s.tell(ctx, tx, c, joined, userID); err != nil {
				return err
			}
		}
		if err := chatProof.Audit(ctx, tx, "chats.participants.add", c.id, before); err != nil {
			return err
		}
		if chat, err = s.view(ctx, tx, c.id); err != nil {
			return err
		}
		tx.Respond(http.StatusCreated, chat)
		return nil
	})
	return chat, err
}

// Remove ends the part that a user takes: one's own, or as the creator of the chat that of another. It returns
// apierr.ChatNotFound, apierr.NoAccess, apierr.ChatFixedParticipants for a direct chat and apierr.ChatParticipantNotFound.
func (s *Service) Remove(ctx context.Context, in RemoveInput) (endpoint.Message, error) {
	caller := access.From(ctx)
	event := left
	if in.UserID != caller.UserID {
		event = removed
	}
	err := s.db.InTx(ctx, func(tx *store.Tx) error {
		c, err := changeable(ctx, tx, in.ID)
		if err != nil {
			return err
		}
		if event == removed {
			if err := mayRemoveOthers(ctx, tx, c); err != nil {
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
		c.positions = c.others(in.UserID)
		if err := s.tell(ctx, tx, c, event, in.UserID); err != nil {
			return err
		}
		if err := chatProof.Audit(ctx, tx, "chats.participants.remove", c.id, before); err != nil {
			return err
		}
		// Mark the removed user's notifications about the chat as read: they lead nowhere any more.
		return s.notifications.MarkRead(ctx, tx, in.UserID, access.Chats, c.id)
	})
	return endpoint.Confirm(ctx, s.texts, "chats.done_"+event), err
}

// mayRemoveOthers returns nil for the creator while they take part, and for whoever may update the chat by a grant on it
// or on all chats, whether they take part or not. It returns apierr.NoAccess for other participants and for a creator who
// has left.
func mayRemoveOthers(ctx context.Context, tx *store.Tx, c conversation) error {
	if caller := access.From(ctx).UserID; caller == c.createdBy && c.has(caller) {
		return nil
	}
	granted, err := conversations.Granted(ctx, tx, c.id, access.Update)
	if err == nil && !granted {
		err = apierr.NoAccess
	}
	return err
}

// changeable reads a chat whose participants the caller is about to change.
func changeable(ctx context.Context, tx *store.Tx, id string) (conversation, error) {
	c, err := conversations.Get(ctx, tx, id, access.Update)
	if err == nil && c.kind == Direct {
		err = apierr.ChatFixedParticipants
	}
	return c, err
}

// checkActive refuses users who do not exist or are not active, all at once.
func checkActive(ctx context.Context, tx *store.Tx, ids []string) error {
	active, err := selectActive(ctx, tx, ids)
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
