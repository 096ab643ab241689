// Package profile keeps what users choose for themselves: the picture by which others know them, and how the console
// shows dates, amounts and colours.
//
// A picture is decoded and drawn anew in two sizes; nothing of the uploaded file is kept, neither its name nor its EXIF
// data nor its colour profile. The two are rows of the database, so that a backup has them and a picture is replaced or
// removed in one transaction: there are no files that could be left behind. Whoever knows the address of a picture sees
// it; the address is random and new with each upload.
package profile

import (
	"context"
	"crypto/rand"

	"kontor/modules/kit/records"
	"kontor/modules/sandbox"
	"kontor/server/access"
	"kontor/server/apierr"
	"kontor/server/endpoint"
	"kontor/store"
)

// Profile is all that a user has chosen.
type Profile struct {
	UserID      string      `json:"user_id"`
	Avatar      *Avatar     `json:"avatar"`
	Preferences Preferences `json:"preferences"`
}

// ETag changes with each of its parts.
func (p Profile) ETag() string {
	if p.Avatar == nil {
		return p.Preferences.ETag()
	}
	return p.Preferences.ETag() + "-" + p.Avatar.token
}

// Avatar tells where the picture of a user is. The addresses are relative to that of the service.
type Avatar struct {
	URL          string `json:"url" doc:"512 pixels square."`           // 512 pixels square
	ThumbnailURL string `json:"thumbnail_url" doc:"128 pixels square."` // 128 pixels square

	token string
}

// Options are the limits of uploads.
type Options struct {
	MaxBytes  int64 // of a file
	MaxPixels int64 // of a picture, width times height
}

// Service is the module. Make one with [New].
type Service struct {
	Options
	db    *store.DB
	texts endpoint.Texts
	slots *slots
	pool  *sandbox.Pool
}

// New makes the module on a database.
func New(db *store.DB, texts endpoint.Texts, o Options) *Service {
	return &Service{Options: o, db: db, texts: texts, slots: newSlots(o.MaxPixels), pool: newPool(o.MaxPixels)}
}

// Close ends the workers that decode pictures.
func (s *Service) Close(ctx context.Context) { s.pool.Close(ctx) }

// Get gives the profile of the caller.
func (s *Service) Get(ctx context.Context, _ endpoint.None) (Profile, error) {
	p := Profile{UserID: access.From(ctx).UserID}
	stored, err := selectPreferences(ctx, s.db, p.UserID)
	if err != nil {
		return p, err
	}
	p.Preferences = stored.shown()
	p.Avatar, err = selectAvatar(ctx, s.db, p.UserID)
	return p, err
}

// upload makes the file in the request the picture of the caller. It returns apierr.InvalidFileType for what is neither
// JPEG nor PNG, and apierr.InvalidImage with the reason for one that cannot be used.
func (s *Service) upload(ctx context.Context, r *endpoint.Request) (Avatar, error) {
	request := r.Fiber.Request()
	file, err := filePart(string(request.Header.ContentType()), request.Body(), s.MaxBytes)
	if err != nil {
		return Avatar{}, err
	}
	pictures, err := s.draw(ctx, file)
	if err != nil {
		return Avatar{}, err
	}
	return s.setAvatar(ctx, pictures)
}

// setAvatar stores the pictures in place of those before.
func (s *Service) setAvatar(ctx context.Context, pictures []picture) (Avatar, error) {
	userID := access.From(ctx).UserID
	for i := range pictures {
		pictures[i].token = rand.Text()
	}
	avatar := avatarOf(pictures)
	err := s.db.InTx(ctx, func(tx *store.Tx) error {
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

// RemoveAvatar removes the picture of the caller. It returns apierr.AvatarNotFound where there is none.
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

// profiles has no rows of its own: everybody who exists has a profile, by the id of the user.
var profiles = &records.Table[string]{
	Type: access.Profiles, From: "users", Columns: "id",
	Relations: []records.Relation{{Allows: access.Read | access.Update, SQL: "id = $1"}},
	Missing:   apierr.UserNotFound,
}

// Standings answers permission checks: everybody reads and changes his own profile.
func (s *Service) Standings(ctx context.Context, userID string, ids []string) (map[string]access.Standing, error) {
	return profiles.Standings(ctx, s.db, userID, ids)
}
