package personas

import (
	"net/http"

	"kontor/server/access"
	"kontor/server/apierr"
	"kontor/server/endpoint"
	"kontor/server/ratelimit"
)

// Endpoints returns the endpoints of the module.
func (s *Service) Endpoints() []endpoint.Endpoint {
	create, read := access.On(access.Personas, access.Create), access.On(access.Personas, access.Read)
	update, remove := access.On(access.Personas, access.Update), access.On(access.Personas, access.Delete)
	rows := []endpoint.Endpoint{
		{Name: "personas.create", Method: http.MethodPost, Path: "/v1/personas", Access: create, Tag: "Personal Identity",
			Summary: "Create a persona.", Handle: endpoint.JSON(http.StatusCreated, s.Create)},
		{Name: "personas.list", Method: http.MethodGet, Path: "/v1/personas", Access: read, Tag: "Personal Identity",
			Summary: "List personas.", Doc: endpoint.Doc{Search: personas.List.Search()},
			Handle: endpoint.JSON(http.StatusOK, s.List)},
		{Name: "personas.get", Method: http.MethodGet, Path: "/v1/personas/{persona_id}", Access: read, Tag: "Personal Identity",
			Summary: "Get a persona.", Faults: []apierr.Kind{apierr.PersonaNotFound}, Handle: endpoint.JSON(http.StatusOK, s.Get)},
		{Name: "personas.update", Method: http.MethodPut, Path: "/v1/personas/{persona_id}", Access: update, Tag: "Personal Identity",
			Summary: "Replace the data of a persona. Without metadata or active, these keep their values.",
			Faults:  []apierr.Kind{apierr.PersonaNotFound, apierr.OwnPersona, apierr.PreconditionFailed}, Handle: endpoint.JSON(http.StatusOK, s.Update)},
		{Name: "personas.delete", Method: http.MethodDelete, Path: "/v1/personas/{persona_id}", Access: remove, Tag: "Personal Identity",
			Summary: "Archive a persona: it becomes inactive and stays readable.",
			Faults:  []apierr.Kind{apierr.PersonaNotFound, apierr.PreconditionFailed}, Handle: endpoint.JSON(http.StatusOK, s.Archive)},

		{Name: "personas.users.list", Method: http.MethodGet, Path: "/v1/personas/{persona_id}/users", Access: read, Tag: "User-Persona",
			Summary: "List the users linked to a persona.", Faults: []apierr.Kind{apierr.PersonaNotFound}, Doc: endpoint.Doc{Search: userLinkList.Search()},
			Handle: endpoint.JSON(http.StatusOK, s.Users)},
		{Name: "personas.users.add", Method: http.MethodPost, Path: "/v1/personas/{persona_id}/users", Subject: access.NoSubject("callers give what they hold: reading the persona"), Access: update, Tag: "User-Persona",
			Summary: "Link a user to a persona. The link is pending until the user accepts it, unless staff or the user created it.",
			Faults:  []apierr.Kind{apierr.PersonaNotFound, apierr.UserNotFound, apierr.PersonaUserExists}, Handle: endpoint.JSON(http.StatusCreated, s.AddUser)},
		{Name: "personas.users.remove", Method: http.MethodDelete, Path: "/v1/personas/{persona_id}/users/{user_id}", Subject: access.NoSubject("whoever may update a persona decides who uses it"), Access: update, Tag: "User-Persona",
			Summary: "Remove the link between a user and a persona.",
			Faults:  []apierr.Kind{apierr.PersonaNotFound, apierr.PersonaUserNotFound, apierr.OwnPersona, apierr.PreconditionFailed}, Handle: endpoint.JSON(http.StatusOK, s.RemoveUser)},

		{Name: "personas.users.accept", Method: http.MethodPost, Path: "/v1/personas/{persona_id}/users/{user_id}/accept", Subject: access.NoSubject("users accept for themselves"), Access: read, Tag: "User-Persona",
			Summary: "Accept a pending link between a user and a persona.",
			Faults:  []apierr.Kind{apierr.PersonaNotFound, apierr.PersonaUserNotFound, apierr.PreconditionFailed}, Handle: endpoint.JSON(http.StatusOK, s.AcceptUser)},
		{Name: "personas.users.mine", Method: http.MethodGet, Path: "/v1/profile/personas", Access: read, Tag: "User-Persona",
			Summary: "List the caller's links to personas, including pending ones.", Doc: endpoint.Doc{Search: ownLinkList.Search()},
			Handle: endpoint.JSON(http.StatusOK, s.OwnLinks)},

		{Name: "personas.links.list", Method: http.MethodGet, Path: "/v1/personas/{persona_id}/links", Access: read, Tag: "Persona Links",
			Summary: "List the links between a persona and other personas.", Faults: []apierr.Kind{apierr.PersonaNotFound}, Doc: endpoint.Doc{Search: linkList.Search()},
			Handle: endpoint.JSON(http.StatusOK, s.Links)},
		{Name: "personas.links.add", Method: http.MethodPost, Path: "/v1/personas/{persona_id}/links", Access: update, Tag: "Persona Links",
			Summary: "Link another persona to this one. The relation is that of the linked persona to the persona in the path.",
			Faults:  []apierr.Kind{apierr.PersonaNotFound, apierr.PersonaLinkExists}, Handle: endpoint.JSON(http.StatusCreated, s.Link)},
		{Name: "personas.links.accept", Method: http.MethodPost, Path: "/v1/personas/{persona_id}/links/{link_id}/accept", Access: update, Tag: "Persona Links",
			Summary: "Accept a pending link between two personas, as staff or on the other side.",
			Faults:  []apierr.Kind{apierr.PersonaNotFound, apierr.PersonaLinkNotFound, apierr.PreconditionFailed}, Handle: endpoint.JSON(http.StatusOK, s.AcceptLink)},
		{Name: "personas.links.remove", Method: http.MethodDelete, Path: "/v1/personas/{persona_id}/links/{link_id}", Access: update, Tag: "Persona Links",
			Summary: "Remove a link between two personas, from either side.",
			Faults:  []apierr.Kind{apierr.PersonaNotFound, apierr.PersonaLinkNotFound, apierr.OwnPersona, apierr.PreconditionFailed}, Handle: endpoint.JSON(http.StatusOK, s.Unlink)},
	}
	for i := range rows {
		if rows[i].Method == http.MethodPut || rows[i].Name == "personas.delete" {
			rows[i].Faults = append(rows[i].Faults, apierr.RecordErased)
		}
		if m := rows[i].Method; m == http.MethodPost || m == http.MethodPut { // these may exceed the owner's quota
			rows[i].Faults = append(rows[i].Faults, apierr.QuotaExceeded)
		}
		rows[i].Limit, rows[i].Roles = ratelimit.Private, []string{access.Advisor, access.Customer}
	}
	return rows
}
