package chats

import (
	"net/http"
	"reflect"

	"kontor/server/access"
	"kontor/server/apierr"
	"kontor/server/endpoint"
	"kontor/server/ratelimit"
)

// Endpoints returns the rows of the module.
func (s *Service) Endpoints() []endpoint.Endpoint {
	create := endpoint.JSON(http.StatusCreated, s.Create)
	create.Out = reflect.TypeFor[Chat]()
	list := endpoint.JSON(http.StatusOK, s.List)
	list.Out = reflect.TypeFor[[]ListedChat]()
	messages := endpoint.JSON(http.StatusOK, s.Messages)
	messages.Out = reflect.TypeFor[[]ListedMessage]()
	rows := []endpoint.Endpoint{
		{Name: "chats.create", Method: http.MethodPost, Path: "/v1/chats", Subject: access.NoSubject("the creator gives rights to a chat of their own"),
			Access: access.On(access.Chats, access.Create), Summary: "Create a chat.",
			Doc: endpoint.Doc{Answers: []endpoint.Answer{
				{Status: http.StatusCreated, Says: "The new chat."}, {Status: http.StatusOK, Says: "The existing direct chat of the two users."},
			}},
			Handle: create},
		{Name: "chats.list", Method: http.MethodGet, Path: "/v1/chats",
			Access: access.On(access.Chats, access.Read), Summary: "List chats, the latest activity first.",
			Doc: endpoint.Doc{Linked: true}, Handle: list},
		{Name: "chats.get", Method: http.MethodGet, Path: "/v1/chats/{id}",
			Access: access.On(access.Chats, access.Read), Summary: "Get a chat.",
			Faults: []apierr.Kind{apierr.ChatNotFound}, Handle: endpoint.JSON(http.StatusOK, s.Get)},
		{Name: "chats.messages", Method: http.MethodGet, Path: "/v1/chats/{id}/messages",
			Access: access.On(access.Chats, access.Read), Summary: "List the messages of a chat, the newest first.",
			Faults: []apierr.Kind{apierr.ChatNotFound}, Doc: endpoint.Doc{Linked: true}, Handle: messages},
		{Name: "chats.post", Method: http.MethodPost, Path: "/v1/chats/{id}/messages",
			Access: access.On(access.Chats, access.Update), Summary: "Post a message.",
			Faults: []apierr.Kind{apierr.ChatNotFound}, Handle: endpoint.JSON(http.StatusCreated, s.Post)},
		{Name: "chats.read", Method: http.MethodPost, Path: "/v1/chats/{id}/read",
			Access: access.On(access.Chats, access.Read), Summary: "Mark a chat and its notifications as read.",
			Faults: []apierr.Kind{apierr.ChatNotFound}, Handle: endpoint.JSON(http.StatusOK, s.MarkRead)},
		{Name: "chats.add_participants", Method: http.MethodPost, Path: "/v1/chats/{id}/participants", Subject: access.NoSubject("callers give what they hold: reading and writing the chat"),
			Access: access.On(access.Chats, access.Update), Summary: "Add participants to a chat.",
			Faults: []apierr.Kind{apierr.ChatNotFound, apierr.ChatFixedParticipants, apierr.ChatParticipantExists, apierr.ChatFull},
			Handle: endpoint.JSON(http.StatusCreated, s.AddParticipants)},
		{Name: "chats.remove_participant", Method: http.MethodDelete, Path: "/v1/chats/{id}/participants/{user_id}", Subject: access.NoSubject("the creator of a chat decides who takes part"),
			Access: access.On(access.Chats, access.Update), Summary: "Remove a participant from a chat, or leave it.",
			Faults: []apierr.Kind{apierr.ChatNotFound, apierr.ChatFixedParticipants, apierr.ChatParticipantNotFound},
			Handle: endpoint.JSON(http.StatusOK, s.RemoveParticipant)},
	}
	for i := range rows {
		if m := rows[i].Method; m == http.MethodPost || m == http.MethodPut { // these store more for the owner
			rows[i].Faults = append(rows[i].Faults, apierr.QuotaExceeded)
		}
		rows[i].Tag, rows[i].Limit, rows[i].Roles = "Chats", ratelimit.Private, []string{access.Advisor, access.Customer}
	}
	return rows
}
