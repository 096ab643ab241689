package personas

import (
	"net/http"

	"kontor/server/access"
	"kontor/server/apierr"
	"kontor/server/endpoint"
	"kontor/server/ratelimit"
)

// Endpoints are the rows of the module.
func (s *Service) Endpoints() []endpoint.Endpoint {
	create, read := access.On(access.Personas, access.Create), access.On(access.Personas, access.Read)
	update, remove := access.On(access.Personas, access.Update), access.On(access.Personas, access.Delete)
	rows := []endpoint.Endpoint{
		{Name: "personas.create", Method: http.MethodPost, Path: "/v1/personas", Access: create, Tag: "Personal Identity",
			Summary: "Enter a persona.", Handle: endpoint.JSON(http.StatusCreated, s.Create)},
		{Name: "personas.list", Method: http.MethodGet, Path: "/v1/personas", Access: read, Tag: "Personal Identity",
			Summary: "List the personas that the caller may see.", Doc: endpoint.Doc{Search: personaList.Search()},
			Handle: endpoint.JSON(http.StatusOK, s.List)},
		{Name: "personas.get", Method: http.MethodGet, Path: "/v1/personas/{persona_id}", Access: read, Tag: "Personal Identity",
			Summary: "Give one persona.", Faults: []apierr.Kind{apierr.PersonaNotFound}, Handle: endpoint.JSON(http.StatusOK, s.Get)},
		{Name: "personas.update", Method: http.MethodPut, Path: "/v1/personas/{persona_id}", Access: update, Tag: "Personal Identity",
			Summary: "Replace the data of a persona; metadata and active stay where they are not given.",
			Faults:  []apierr.Kind{apierr.PersonaNotFound, apierr.PreconditionFailed}, Handle: endpoint.JSON(http.StatusOK, s.Update)},
		{Name: "personas.delete", Method: http.MethodDelete, Path: "/v1/personas/{persona_id}", Access: remove, Tag: "Personal Identity",
			Summary: "Make a persona inactive.",
			Faults:  []apierr.Kind{apierr.PersonaNotFound, apierr.PreconditionFailed}, Handle: endpoint.JSON(http.StatusOK, s.Archive)},

		{Name: "personas.users.list", Method: http.MethodGet, Path: "/v1/personas/{persona_id}/users", Access: read, Tag: "User-Persona",
			Summary: "List the users whose identity a persona is.", Faults: []apierr.Kind{apierr.PersonaNotFound}, Doc: endpoint.Doc{Search: userLinkList.Search()},
			Handle: endpoint.JSON(http.StatusOK, s.Users)},
		{Name: "personas.users.add", Method: http.MethodPost, Path: "/v1/personas/{persona_id}/users", Access: update, Tag: "User-Persona",
			Summary: "Make a persona the identity of a user, who may read it from then on; what others than staff or the user enter is pending until the user accepts it.",
			Faults:  []apierr.Kind{apierr.PersonaNotFound, apierr.UserNotFound, apierr.PersonaUserExists}, Handle: endpoint.JSON(http.StatusCreated, s.AddUser)},
		{Name: "personas.users.remove", Method: http.MethodDelete, Path: "/v1/personas/{persona_id}/users/{user_id}", Access: update, Tag: "User-Persona",
			Summary: "End that a persona is the identity of a user.",
			Faults:  []apierr.Kind{apierr.PersonaNotFound, apierr.PersonaUserNotFound, apierr.PreconditionFailed}, Handle: endpoint.JSON(http.StatusOK, s.RemoveUser)},

		{Name: "personas.users.accept", Method: http.MethodPost, Path: "/v1/personas/{persona_id}/users/{user_id}/accept", Access: read, Tag: "User-Persona",
			Summary: "Accept a pending link: the user confirms that the persona is their identity.",
			Faults:  []apierr.Kind{apierr.PersonaNotFound, apierr.PersonaUserNotFound, apierr.PreconditionFailed}, Handle: endpoint.JSON(http.StatusOK, s.AcceptUser)},
		{Name: "personas.users.mine", Method: http.MethodGet, Path: "/v1/profile/personas", Access: read, Tag: "User-Persona",
			Summary: "List the links between personas and the caller, pending ones among them.", Doc: endpoint.Doc{Search: ownLinkList.Search()},
			Handle: endpoint.JSON(http.StatusOK, s.Mine)},

		{Name: "personas.links.list", Method: http.MethodGet, Path: "/v1/personas/{persona_id}/links", Access: read, Tag: "Persona Links",
			Summary: "List what other personas are to a persona, and it to them.", Faults: []apierr.Kind{apierr.PersonaNotFound}, Doc: endpoint.Doc{Search: linkList.Search()},
			Handle: endpoint.JSON(http.StatusOK, s.Links)},
		{Name: "personas.links.add", Method: http.MethodPost, Path: "/v1/personas/{persona_id}/links", Access: update, Tag: "Persona Links",
			Summary: "Say what another persona is to this one: the relation is that of the linked persona to the one in the path.",
			Faults:  []apierr.Kind{apierr.PersonaNotFound, apierr.PersonaLinkExists}, Handle: endpoint.JSON(http.StatusCreated, s.Link)},
		{Name: "personas.links.accept", Method: http.MethodPost, Path: "/v1/personas/{persona_id}/links/{link_id}/accept", Access: update, Tag: "Persona Links",
			Summary: "Accept a pending link between two personas, as staff or from the other end.",
			Faults:  []apierr.Kind{apierr.PersonaNotFound, apierr.PersonaLinkNotFound, apierr.PreconditionFailed}, Handle: endpoint.JSON(http.StatusOK, s.AcceptLink)},
		{Name: "personas.links.remove", Method: http.MethodDelete, Path: "/v1/personas/{persona_id}/links/{link_id}", Access: update, Tag: "Persona Links",
			Summary: "Remove a link between two personas, from either end.",
			Faults:  []apierr.Kind{apierr.PersonaNotFound, apierr.PersonaLinkNotFound, apierr.PreconditionFailed}, Handle: endpoint.JSON(http.StatusOK, s.Unlink)},
	}
	for i := range rows {
		if m := rows[i].Method; m == http.MethodPost || m == http.MethodPut { // these can add to what the owner stores
			rows[i].Faults = append(rows[i].Faults, apierr.QuotaExceeded)
		}
		rows[i].Limit, rows[i].Roles = ratelimit.Private, []string{access.Advisor, access.Customer}
	}
	return rows
}
