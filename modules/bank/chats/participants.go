package chats

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/go-json-experiment/json"

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
		if err == nil && c.kind == Support && checkTeam(ctx) != nil {
			err = apierr.ChatFixedParticipants // customers bring no others into a conversation with the bank
		}
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
		err = chatProof.Change(ctx, tx, "chats.participants.remove", c.id, func() error {
			if _, err := tx.Exec(ctx, deleteParticipantStatement, c.id, in.UserID); err != nil {
				return err
			}
			c.participants = slices.DeleteFunc(c.participants, func(p participant) bool { return p.userID == in.UserID })
			return s.writeSystemMessage(ctx, tx, c, event, in.UserID)
		})
		if err != nil {
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
		// Those who write to the bank do not choose who answers.
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

// EachUser calls add with the participants, and with the users whom the last message names.
func (c Chat) EachUser(add func(id string)) {
	for _, id := range c.Participants {
		add(id)
	}
	if c.LastMessage != nil {
		c.LastMessage.EachUser(add)
	}
}

// EachUser calls add with the sender, and with the user whom a system message is about. The chat names the participants who
// have read the message.
func (m Message) EachUser(add func(id string)) {
	add(m.SenderID)
	if m.Type == System {
		add(m.subject())
	}
}

// subject returns the id of the user whom a system message is about, or an empty string. The metadata of other messages
// belong to their senders: the result is empty.
func (m Message) subject() string {
	var metadata struct {
		UserID string `json:"userId"`
	}
	if err := json.Unmarshal(m.Metadata, &metadata); err != nil {
		return "" // written by Kontor; invalid only in a damaged row
	}
	return metadata.UserID
}

// people are the users whom an element of an array names. Answers that are objects get them from the server.
type people map[string]endpoint.Person

// ListedChat is a chat of a list.
type ListedChat struct {
	Chat
	People people `json:"people" doc:"The users whom the chat names, by id."`
}

// ListedMessage is a message of a list.
type ListedMessage struct {
	Message
	People people `json:"people" doc:"The sender, and the user whom a system message is about, by id."`
}

// peopleOf looks up the users whom the elements of an array name, all at once, and returns those of each element.
func peopleOf[T endpoint.NamesUsers](ctx context.Context, directory directory, elements []T) ([]people, error) {
	all := make([]people, len(elements))
	var ids []string
	seen := map[string]bool{}
	for _, element := range elements {
		element.EachUser(func(id string) {
			if id != "" && !seen[id] {
				seen[id] = true
				ids = append(ids, id)
			}
		})
	}
	if len(ids) == 0 {
		return all, nil
	}
	known, err := directory.People(ctx, ids)
	if err != nil {
		return all, fmt.Errorf("look up the users of a list: %w", err)
	}
	for i, element := range elements {
		all[i] = people{}
		element.EachUser(func(id string) {
			if person, ok := known[id]; ok {
				all[i][id] = person
			}
		})
	}
	return all, nil
}

// listChats adds the people to the chats of a list.
func (s *Service) listChats(ctx context.Context, chats []Chat) ([]ListedChat, error) {
	named, err := peopleOf(ctx, s.directory, chats)
	listed := make([]ListedChat, len(chats))
	for i, c := range chats {
		listed[i] = ListedChat{c, named[i]}
	}
	return listed, err
}

// listMessages adds the people to the messages of a list.
func (s *Service) listMessages(ctx context.Context, messages []Message) ([]ListedMessage, error) {
	named, err := peopleOf(ctx, s.directory, messages)
	listed := make([]ListedMessage, len(messages))
	for i, m := range messages {
		listed[i] = ListedMessage{m, named[i]}
	}
	return listed, err
}
