package chats

import (
	"net/http"
	"reflect"

	"kontor/server/access"
	"kontor/server/apierr"
	"kontor/server/endpoint"
	"kontor/server/ratelimit"
)

// Endpoints are the rows of the module.
func (s *Service) Endpoints() []endpoint.Endpoint {
	create := endpoint.JSON(http.StatusCreated, s.Create)
	create.Out = reflect.TypeFor[Chat]()
	list := endpoint.JSON(http.StatusOK, s.List)
	list.Out = reflect.TypeFor[[]Chat]()
	messages := endpoint.JSON(http.StatusOK, s.Messages)
	messages.Out = reflect.TypeFor[[]Message]()
	rows := []endpoint.Endpoint{
		{Name: "chats.create", Method: http.MethodPost, Path: "/v1/chats",
			Access: access.On(access.Chats, access.Create), Summary: "Open a chat, or give the direct chat that the two have already (200).",
			Doc: endpoint.Doc{Answers: []endpoint.Answer{
				{Status: http.StatusCreated, Says: "The new chat."}, {Status: http.StatusOK, Says: "The direct chat that the two have already."},
			}},
			Handle: create},
		{Name: "chats.list", Method: http.MethodGet, Path: "/v1/chats",
			Access: access.On(access.Chats, access.Read), Summary: "List the chats of the caller, the latest activity first: as many as fit into 1 MiB.",
			Doc: endpoint.Doc{Linked: true}, Handle: list},
		{Name: "chats.get", Method: http.MethodGet, Path: "/v1/chats/{id}",
			Access: access.On(access.Chats, access.Read), Summary: "Give one chat.",
			Faults: []apierr.Kind{apierr.ChatNotFound}, Handle: endpoint.JSON(http.StatusOK, s.Get)},
		{Name: "chats.messages", Method: http.MethodGet, Path: "/v1/chats/{id}/messages",
			Access: access.On(access.Chats, access.Read), Summary: "List messages of a chat, the newest first.",
			Faults: []apierr.Kind{apierr.ChatNotFound}, Doc: endpoint.Doc{Linked: true}, Handle: messages},
		{Name: "chats.post", Method: http.MethodPost, Path: "/v1/chats/{id}/messages",
			Access: access.On(access.Chats, access.Update), Summary: "Write a message.",
			Faults: []apierr.Kind{apierr.ChatNotFound}, Handle: endpoint.JSON(http.StatusCreated, s.Post)},
		{Name: "chats.read", Method: http.MethodPost, Path: "/v1/chats/{id}/read",
			Access: access.On(access.Chats, access.Read), Summary: "Mark all messages of a chat, and the notifications of them, as read.",
			Faults: []apierr.Kind{apierr.ChatNotFound}, Handle: endpoint.JSON(http.StatusOK, s.Read)},
		{Name: "chats.add_participants", Method: http.MethodPost, Path: "/v1/chats/{id}/participants",
			Access: access.On(access.Chats, access.Update), Summary: "Let further users take part in a chat.",
			Faults: []apierr.Kind{apierr.ChatNotFound, apierr.ChatFixedParticipants, apierr.ChatParticipantExists, apierr.ChatFull},
			Handle: endpoint.JSON(http.StatusCreated, s.Add)},
		{Name: "chats.remove_participant", Method: http.MethodDelete, Path: "/v1/chats/{id}/participants/{user_id}",
			Access: access.On(access.Chats, access.Update), Summary: "Leave a chat, or remove a participant from it.",
			Faults: []apierr.Kind{apierr.ChatNotFound, apierr.ChatFixedParticipants, apierr.ChatParticipantNotFound},
			Handle: endpoint.JSON(http.StatusOK, s.Remove)},
	}
	for i := range rows {
		if m := rows[i].Method; m == http.MethodPost || m == http.MethodPut { // these can add to what the owner stores
			rows[i].Faults = append(rows[i].Faults, apierr.QuotaExceeded)
		}
		rows[i].Tag, rows[i].Limit, rows[i].Roles = "Chats", ratelimit.Private, []string{access.Advisor, access.Customer}
	}
	return rows
}
