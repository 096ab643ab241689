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
	rows = append(rows, s.inboxEndpoints()...)
	for i := range rows {
		if m := rows[i].Method; m == http.MethodPost || m == http.MethodPut { // these store more for the owner
			rows[i].Faults = append(rows[i].Faults, apierr.QuotaExceeded)
		}
		rows[i].Tag, rows[i].Limit = "Chats", ratelimit.Private
		if rows[i].Roles == nil {
			rows[i].Roles = []string{access.Advisor, access.Customer}
		}
	}
	return rows
}

// inboxEndpoints returns the rows of the inbox. The staff alone get them; the service checks that they read all customers.
func (s *Service) inboxEndpoints() []endpoint.Endpoint {
	write := endpoint.JSON(http.StatusCreated, s.WriteToBank)
	write.Out = reflect.TypeFor[Chat]()
	messages := endpoint.JSON(http.StatusOK, s.ThreadMessages)
	messages.Out = reflect.TypeFor[[]ListedMessage]()
	noSubject := access.NoSubject("an answer, a note and the state of a thread give no rights; an assignee already answers customers")
	unknown := []apierr.Kind{apierr.ThreadNotFound}
	rows := []endpoint.Endpoint{
		{Name: "inbox.list", Method: http.MethodGet, Path: "/v1/inbox", Summary: "List the threads of the team inbox.",
			Doc: endpoint.Doc{Search: threadList.Search()}, Handle: endpoint.JSON(http.StatusOK, s.Inbox)},
		{Name: "inbox.templates", Method: http.MethodGet, Path: "/v1/inbox/templates", Summary: "List the templates for answers, in all languages.",
			Handle: endpoint.JSON(http.StatusOK, s.Templates)},
		{Name: "inbox.get", Method: http.MethodGet, Path: "/v1/inbox/{id}", Summary: "Get a thread of the team inbox.",
			Faults: unknown, Handle: endpoint.JSON(http.StatusOK, s.Thread)},
		{Name: "inbox.update", Method: http.MethodPatch, Path: "/v1/inbox/{id}", Subject: noSubject,
			Summary: "Change the state, the assignee or the pause of a thread.",
			Faults:  []apierr.Kind{apierr.ThreadNotFound, apierr.ChatFull, apierr.PreconditionFailed}, Handle: endpoint.JSON(http.StatusOK, s.Update)},
		{Name: "inbox.messages", Method: http.MethodGet, Path: "/v1/inbox/{id}/messages", Summary: "List the messages of a thread, the newest first.",
			Faults: unknown, Doc: endpoint.Doc{Linked: true}, Handle: messages},
		{Name: "inbox.answer", Method: http.MethodPost, Path: "/v1/inbox/{id}/messages", Subject: noSubject, Summary: "Answer a customer.",
			Faults: []apierr.Kind{apierr.ThreadNotFound, apierr.ChatFull}, Handle: endpoint.JSON(http.StatusCreated, s.Answer)},
		{Name: "inbox.notes.list", Method: http.MethodGet, Path: "/v1/inbox/{id}/notes", Summary: "List the internal notes about a thread.",
			Faults: unknown, Doc: endpoint.Doc{Search: noteList.Search()}, Handle: endpoint.JSON(http.StatusOK, s.Notes)},
		{Name: "inbox.notes.add", Method: http.MethodPost, Path: "/v1/inbox/{id}/notes", Subject: noSubject, Summary: "Add an internal note to a thread.",
			Faults: unknown, Handle: endpoint.JSON(http.StatusCreated, s.AddNote)},
	}
	for i := range rows {
		rows[i].Access, rows[i].Roles = access.SignedIn, []string{access.Advisor}
	}
	return append(rows, endpoint.Endpoint{Name: "chats.write_to_bank", Method: http.MethodPost, Path: "/v1/chats/bank",
		Subject: access.NoSubject("the creator gives rights to a chat of their own"), Access: access.On(access.Chats, access.Create),
		PeopleOnly: true, Summary: "Open the caller's chat with the bank.",
		Doc: endpoint.Doc{Answers: []endpoint.Answer{
			{Status: http.StatusCreated, Says: "The new chat."}, {Status: http.StatusOK, Says: "The chat that the caller has with the bank already."},
		}},
		Faults: []apierr.Kind{apierr.ChatFull}, Handle: write})
}
