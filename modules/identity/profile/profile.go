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

	"kontor/modules/kit/records"
	"kontor/modules/kit/sandbox"
	"kontor/server/access"
	"kontor/server/apierr"
	"kontor/server/endpoint"
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
		before, err := readProfile(ctx, tx, userID)
		if err != nil {
			return err
		}
		if err := deleteAvatar(ctx, tx, userID); err != nil {
			return err
		}
		for _, p := range pictures {
			if err := insertPicture(ctx, tx, userID, p); err != nil {
				return err
			}
		}
		return proof.Audit(ctx, tx, "profile.set_avatar", userID, before)
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
		before, err := readProfile(ctx, tx, userID)
		if err != nil {
			return err
		}
		if err := deleteAvatar(ctx, tx, userID); err != nil {
			return err
		}
		return proof.Audit(ctx, tx, "profile.remove_avatar", userID, before)
	})
	return endpoint.Confirm(ctx, s.texts, "profile.avatar_removed"), err
}

// profiles declares profiles as records. Each user has one, with the id of the user.
var profiles = &records.Table[string]{
	Type: access.Profiles, From: "people", Columns: "id",
	Relations: []records.Relation{{Name: access.RelationSelf, Allows: access.Read | access.Update, SQL: "id = $1"}},
	Missing:   apierr.UserNotFound,
}
