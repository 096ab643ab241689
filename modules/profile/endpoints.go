package profile

import (
	"net/http"

	"kontor/server/access"
	"kontor/server/apierr"
	"kontor/server/endpoint"
	"kontor/server/ratelimit"
)

// avatarForm is the form of an upload, for the API's documentation.
type avatarForm struct {
	File []byte `json:"file" required:"true" doc:"A picture, jpg or png by its content."`
}

// Endpoints are the rows of the module.
func (s *Service) Endpoints() []endpoint.Endpoint {
	rows := []endpoint.Endpoint{
		{Name: "profile.get", Method: http.MethodGet, Path: "/v1/profile",
			Summary: "Give the picture and the preferences of the caller.", Handle: endpoint.JSON(http.StatusOK, s.Get)},
		{Name: "profile.preferences.get", Method: http.MethodGet, Path: "/v1/profile/preferences",
			Summary: "Give the preferences of the caller; what he has not chosen follows his language.",
			Handle:  endpoint.JSON(http.StatusOK, s.Preferences)},
		{Name: "profile.preferences.set", Method: http.MethodPut, Path: "/v1/profile/preferences",
			Summary: "Change the given preferences of the caller; null goes back to the default.",
			Faults:  []apierr.Kind{apierr.PreconditionFailed}, Handle: endpoint.JSON(http.StatusOK, s.SetPreferences)},
		{Name: "profile.avatar.set", Method: http.MethodPost, Path: "/v1/profile/avatar", MaxBody: int(s.MaxBytes) + multipartOverhead,
			Summary: "Make a jpg or png, the member file of the form, the picture of the caller.",
			Faults:  []apierr.Kind{apierr.InvalidFileType, apierr.InvalidImage, apierr.PayloadTooLarge, apierr.Unavailable},
			Doc:     endpoint.Doc{Body: avatarForm{}},
			Handle:  endpoint.Upload(http.StatusOK, []string{multipartMedia}, s.upload)},
		{Name: "profile.avatar.remove", Method: http.MethodDelete, Path: "/v1/profile/avatar",
			Summary: "Remove the picture of the caller.",
			Faults:  []apierr.Kind{apierr.AvatarNotFound}, Handle: endpoint.JSON(http.StatusOK, s.RemoveAvatar)},
	}
	for i := range rows {
		rows[i].Access, rows[i].Limit, rows[i].Roles = access.SignedIn, ratelimit.Private, []string{access.Advisor, access.Customer}
	}
	// Public: browsers send no bearer token for the pictures of a page. The address itself is the secret.
	rows = append(rows, endpoint.Endpoint{Name: "profile.avatar.get", Method: http.MethodGet, Path: avatarPath + "{file}",
		Access: access.Public, Limit: ratelimit.Public, Summary: "Give a picture by its address.",
		Faults: []apierr.Kind{apierr.AvatarNotFound},
		Doc: endpoint.Doc{Headers: []string{"If-None-Match"}, Answers: []endpoint.Answer{
			{Status: http.StatusOK, Media: "image/jpeg", Says: "The picture."}, {Status: http.StatusOK, Media: "image/png", Says: "The picture."},
			{Status: http.StatusNotModified},
		}},
		Handle: endpoint.Raw(nil, s.serve)})
	for i := range rows {
		rows[i].Tag = "Profile"
	}
	return rows
}
