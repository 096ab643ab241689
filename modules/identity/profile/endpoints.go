package profile

import (
	"net/http"

	"kontor/server/access"
	"kontor/server/apierr"
	"kontor/server/endpoint"
	"kontor/server/ratelimit"
)

// avatarForm is the form of an upload, for the API document.
type avatarForm struct {
	File []byte `json:"file" required:"true" doc:"A JPEG or PNG picture, recognised by its content."`
}

// Endpoints returns the rows of the module.
func (s *Service) Endpoints() []endpoint.Endpoint {
	rows := []endpoint.Endpoint{
		{Name: "profile.get", Method: http.MethodGet, Path: "/v1/profile",
			Summary: "Get the caller's profile.", Compression: endpoint.Uncompressed, // the addresses of the pictures are secrets
			Handle: endpoint.JSON(http.StatusOK, s.Get)},
		{Name: "profile.preferences.get", Method: http.MethodGet, Path: "/v1/profile/preferences",
			Summary: "Get the caller's preferences.", WithoutFactor: true,
			Handle: endpoint.JSON(http.StatusOK, s.Preferences)},
		{Name: "profile.preferences.set", Method: http.MethodPut, Path: "/v1/profile/preferences",
			Summary: "Update the caller's preferences.",
			Faults:  []apierr.Kind{apierr.PreconditionFailed}, Handle: endpoint.JSON(http.StatusOK, s.SetPreferences)},
		{Name: "profile.avatar.set", Method: http.MethodPost, Path: "/v1/profile/avatar", PeopleOnly: true, MaxBody: int(s.MaxBytes) + multipartOverhead,
			Summary: "Upload the caller's picture.",
			Faults:  []apierr.Kind{apierr.InvalidFileType, apierr.InvalidImage, apierr.PayloadTooLarge, apierr.Unavailable},
			Doc:     endpoint.Doc{Body: avatarForm{}},
			Handle:  endpoint.Upload(http.StatusOK, []string{multipartMedia}, s.upload)},
		{Name: "profile.avatar.remove", Method: http.MethodDelete, Path: "/v1/profile/avatar",
			Summary: "Remove the caller's picture.",
			Faults:  []apierr.Kind{apierr.AvatarNotFound}, Handle: endpoint.JSON(http.StatusOK, s.RemoveAvatar)},
		{Name: "profile.views.list", Method: http.MethodGet, Path: "/v1/profile/views", PeopleOnly: true,
			Summary: "List the caller's saved views.", Doc: endpoint.Doc{Search: viewList.Search()}, Handle: endpoint.JSON(http.StatusOK, s.views)},
		{Name: "profile.views.save", Method: http.MethodPut, Path: "/v1/profile/views", PeopleOnly: true,
			Summary: "Save a view of a list.", Faults: []apierr.Kind{apierr.TooManyViews},
			Doc:    endpoint.Doc{Description: "It replaces the caller's view of the list with the same name."},
			Handle: endpoint.JSON(http.StatusOK, s.SaveView)},
		{Name: "profile.views.remove", Method: http.MethodDelete, Path: "/v1/profile/views/{id}", PeopleOnly: true,
			Summary: "Delete a saved view.", Faults: []apierr.Kind{apierr.ViewNotFound}, Handle: endpoint.JSON(http.StatusOK, s.RemoveView)},
	}
	for i := range rows {
		rows[i].Access, rows[i].Limit, rows[i].Roles = access.Own, ratelimit.Private, []string{access.Advisor, access.Customer}
	}
	// Public: browsers send no bearer token for the pictures of a page. The URL itself is the secret.
	rows = append(rows, endpoint.Endpoint{Name: "profile.avatar.get", Method: http.MethodGet, Path: avatarPath + "{file}",
		Access: access.Public, Limit: ratelimit.Public, Summary: "Get a picture.",
		Faults: []apierr.Kind{apierr.AvatarNotFound},
		Doc: endpoint.Doc{Headers: []string{"If-None-Match"}, Sends: []string{"Content-Disposition"}, Answers: []endpoint.Answer{
			{Status: http.StatusOK, Media: "image/jpeg", Says: "The picture."}, {Status: http.StatusOK, Media: "image/png", Says: "The picture."},
			{Status: http.StatusNotModified},
		}},
		Handle: endpoint.Raw(nil, s.serve)})
	for i := range rows {
		rows[i].Tag = "Profile"
	}
	return rows
}
