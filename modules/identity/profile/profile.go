// Package profile keeps what users choose for themselves: their picture, and how the console shows dates, amounts and colours.
//
// Uploaded pictures are decoded and rendered in two sizes. Nothing else of the file is kept: neither its name nor its EXIF
// data nor its colour profile. The rendered pictures are rows of the database, so that backups contain them and a picture is
// replaced or removed in one transaction, without files that could be orphaned. Anybody with the URL of a picture can load it.
// The URL is random and new with each upload.
package profile

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"

	"kontor/modules/kit/records"
	"kontor/modules/kit/sandbox"
	"kontor/modules/kit/upload"
	"kontor/server/access"
	"kontor/server/apierr"
	"kontor/server/endpoint"
	"kontor/server/ratelimit"
	"kontor/store"
)

// Profile is the picture and the preferences of a user.
type Profile struct {
	UserID      string      `json:"user_id"`
	Avatar      *Avatar     `json:"avatar"`
	Preferences Preferences `json:"preferences"`
}

// ETag changes with the picture and the preferences.
func (p Profile) ETag() string {
	if p.Avatar == nil {
		return p.Preferences.ETag()
	}
	return p.Preferences.ETag() + "-" + p.Avatar.token
}

// EachUser calls add with the user.
func (p Profile) EachUser(add func(id string)) { add(p.UserID) }

// Avatar holds the URLs of the picture of a user, relative to the URL of the service.
type Avatar struct {
	URL          string `json:"url" doc:"512 pixels square."`
	ThumbnailURL string `json:"thumbnail_url" doc:"128 pixels square."`

	token string
}

// Options are the limits of uploads.
type Options struct {
	MaxBytes  int64 // of a file
	MaxPixels int64 // of a picture, width times height
}

// Service is the module. Create one with [New].
type Service struct {
	access.Records // answers permission checks from the relations of the table

	Options
	db          *store.DB
	texts       endpoint.Texts
	decodeLimit *decodeLimit
	pool        *sandbox.Pool
}

// New returns the module on a database.
func New(db *store.DB, texts endpoint.Texts, o Options) *Service {
	return &Service{Records: records.Of(db, profiles), Options: o, db: db, texts: texts,
		decodeLimit: newDecodeLimit(o.MaxPixels), pool: newPool(o.MaxPixels)}
}

// Close ends the workers that decode pictures.
func (s *Service) Close(ctx context.Context) { s.pool.Close(ctx) }

// Get returns the profile of the caller.
func (s *Service) Get(ctx context.Context, _ endpoint.None) (Profile, error) {
	p := Profile{UserID: access.From(ctx).UserID}
	stored, err := selectPreferences(ctx, s.db, p.UserID)
	if err != nil {
		return p, err
	}
	p.Preferences = stored.withDefaults()
	p.Avatar, err = selectAvatar(ctx, s.db, p.UserID)
	return p, err
}

// upload sets the picture of the caller to the file in the request. It returns apierr.InvalidFileType for a file that is
// neither JPEG nor PNG, and apierr.InvalidImage with the reason for one that cannot be used.
func (s *Service) upload(ctx context.Context, r *endpoint.Request) (Avatar, error) {
	request := r.Fiber.Request()
	file, err := filePart(string(request.Header.ContentType()), request.Body(), s.MaxBytes)
	if err != nil {
		return Avatar{}, err
	}
	pictures, err := s.render(ctx, file)
	if err != nil {
		return Avatar{}, err
	}
	return s.setAvatar(ctx, pictures)
}

// setAvatar replaces the pictures of the caller.
func (s *Service) setAvatar(ctx context.Context, pictures []picture) (Avatar, error) {
	userID := access.From(ctx).UserID
	for i := range pictures {
		pictures[i].token = rand.Text()
	}
	avatar := avatarOf(pictures)
	err := s.db.InTx(ctx, func(tx *store.Tx) error {
		if err := requireEnabled(ctx, tx, userID); err != nil {
			return err
		}
		return proof.Change(ctx, tx, "profile.set_avatar", userID, func() error {
			if err := tx.Run(ctx, deleteAvatarStatement, userID); err != nil {
				return err
			}
			for _, p := range pictures {
				if err := tx.Run(ctx, insertPictureStatement, userID, p.pixels, p.token, p.mediaType, p.content, tx.Now()); err != nil {
					return err
				}
			}
			return nil
		})
	})
	return avatar, err
}

// RemoveAvatar removes the picture of the caller. It returns apierr.AvatarNotFound if there is none.
func (s *Service) RemoveAvatar(ctx context.Context, _ endpoint.None) (endpoint.Message, error) {
	userID := access.From(ctx).UserID
	err := s.db.InTx(ctx, func(tx *store.Tx) error {
		avatar, err := selectAvatar(ctx, tx, userID)
		if err != nil {
			return err
		}
		if avatar == nil {
			return apierr.AvatarNotFound
		}
		return proof.ChangeRow(ctx, tx, "profile.remove_avatar", userID, deleteAvatarStatement, userID)
	})
	return endpoint.Confirm(ctx, s.texts, "profile.avatar_removed"), err
}

// profiles declares profiles as records. Each user has one, with the id of the user.
var profiles = &records.Table[string]{
	Type: access.Profiles, From: "people", Columns: "id",
	Relations: []records.Relation{{Name: access.RelationSelf, Allows: access.Read | access.Update, SQL: "id = $1"}},
	Missing:   apierr.UserNotFound,
}

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
			Doc: endpoint.Doc{Description: "Preferences that the caller has not set have the defaults of the language in Accept-Language, " +
				"and without this header those of the caller's language."},
			Handle: endpoint.JSON(http.StatusOK, s.Preferences)},
		{Name: "profile.preferences.set", Method: http.MethodPut, Path: "/v1/profile/preferences",
			Summary: "Update the caller's preferences.",
			Faults:  []apierr.Kind{apierr.PreconditionFailed}, Handle: endpoint.JSON(http.StatusOK, s.SetPreferences)},
		{Name: "profile.avatar.set", Method: http.MethodPost, Path: "/v1/profile/avatar", PeopleOnly: true, MaxBody: int(s.MaxBytes) + upload.FormOverhead,
			Summary: "Upload the caller's picture.",
			Faults:  []apierr.Kind{apierr.InvalidFileType, apierr.InvalidImage, apierr.PayloadTooLarge, apierr.Unavailable},
			Doc:     endpoint.Doc{Body: avatarForm{}},
			Handle:  endpoint.Upload(http.StatusOK, []string{upload.FormMedia}, s.upload)},
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
		rows[i].Access, rows[i].Roles = access.SignedIn, []string{access.Everyone}
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
	return endpoint.Group("Profile", ratelimit.Private, rows)
}

// Proofs returns how the audit trail digests the records of this module.
func Proofs() []records.Proof { return []records.Proof{proof} }

// proof covers what a user has set. The preferences that the API shows depend on the language of the user, so the stored
// preferences are covered instead.
var proof = records.Proof{
	Type: access.Profiles.Name, Read: readProfile,
	From: "(SELECT user_id FROM profile_preferences UNION SELECT user_id FROM avatars UNION SELECT user_id FROM list_views) AS chosen", Key: "user_id",
	Outside: map[string]string{"preferences": `{"theme":"","date_format":"","currency_display":"","number_format":""}`},
}

const (
	selectStoredPreferences = `SELECT theme, date_format, currency_display, number_format, version FROM profile_preferences WHERE user_id = $1`
	selectPictures          = `SELECT pixels, token, media_type, content FROM avatars WHERE user_id = $1 ORDER BY pixels DESC`
)

// storedProfile holds the columns of a profile that the API does not show.
type storedProfile struct {
	Theme           *string         `json:"theme"`
	DateFormat      *string         `json:"date_format"`
	CurrencyDisplay *string         `json:"currency_display"`
	NumberFormat    *string         `json:"number_format"`
	Version         int64           `json:"version"`
	Pictures        []storedPicture `json:"pictures"`
	Views           []View          `json:"views,omitempty"`
}

type storedPicture struct {
	Pixels    int64  `json:"pixels"`
	MediaType string `json:"media_type"`
	SHA256    string `json:"sha256"`
}

// readProfile reads what a user has set, which may be nothing.
func readProfile(ctx context.Context, q store.Querier, userID string) (store.Record, error) {
	var s storedProfile
	err := q.QueryRow(ctx, selectStoredPreferences, userID).Scan(&s.Theme, &s.DateFormat, &s.CurrencyDisplay, &s.NumberFormat, &s.Version)
	if err := store.Optional(err); err != nil {
		return store.Record{}, err
	}
	pictures, err := store.All(ctx, q, scanPicture, selectPictures, userID)
	if err != nil {
		return store.Record{}, fmt.Errorf("read pictures: %w", err)
	}
	for _, p := range pictures {
		sum := sha256.Sum256(p.content)
		s.Pictures = append(s.Pictures, storedPicture{p.pixels, p.mediaType, hex.EncodeToString(sum[:])})
	}
	if s.Views, err = selectViews(ctx, q, userID); err != nil {
		return store.Record{}, err
	}
	answer := Profile{UserID: userID}
	if len(pictures) > 0 {
		avatar := avatarOf(pictures)
		answer.Avatar = &avatar
	}
	return store.Record{Answer: answer, Stored: s}, nil
}
