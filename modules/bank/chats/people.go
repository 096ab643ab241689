package chats

import (
	"context"
	"fmt"

	"github.com/go-json-experiment/json"

	"kontor/server/endpoint"
)

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

// peopleOf looks up the users whom the elements of an array name, all at once, and calls set with those of each element.
func peopleOf[T endpoint.NamesUsers](ctx context.Context, directory directory, elements []T, set func(i int, named people)) error {
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
		return nil
	}
	known, err := directory.People(ctx, ids)
	if err != nil {
		return fmt.Errorf("look up the users of a list: %w", err)
	}
	for i, element := range elements {
		named := people{}
		element.EachUser(func(id string) {
			if person, ok := known[id]; ok {
				named[id] = person
			}
		})
		set(i, named)
	}
	return nil
}

// listChats adds the people to the chats of a list.
func (s *Service) listChats(ctx context.Context, chats []Chat) ([]ListedChat, error) {
	listed := make([]ListedChat, len(chats))
	for i, c := range chats {
		listed[i].Chat = c
	}
	err := peopleOf(ctx, s.directory, chats, func(i int, named people) { listed[i].People = named })
	return listed, err
}

// listMessages adds the people to the messages of a list.
func (s *Service) listMessages(ctx context.Context, messages []Message) ([]ListedMessage, error) {
	listed := make([]ListedMessage, len(messages))
	for i, m := range messages {
		listed[i].Message = m
	}
	err := peopleOf(ctx, s.directory, messages, func(i int, named people) { listed[i].People = named })
	return listed, err
}
