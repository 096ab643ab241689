package profile

import (
	"context"

	"kontor/modules/kit/personal"
	"kontor/store"
)

// PersonalData lists the tables of the module.
func (s *Service) PersonalData() []personal.Table {
	return []personal.Table{
		{Name: "profile_preferences", Holds: "how the console shows dates, amounts and colours to a user", Sections: []string{"preferences"}},
		{Name: "list_views", Holds: "the lists of the console that a user has saved", Sections: []string{"views"}},
		{Name: "avatars", Holds: "the picture of a user in two sizes", Sections: []string{"pictures"}},
	}
}

// exportedPicture is a picture in an export. Its content is written in base64.
type exportedPicture struct {
	Pixels    int64  `json:"pixels"`
	MediaType string `json:"media_type"`
	Content   []byte `json:"content"`
}

// PersonalSections declares preferences, saved views and pictures of a user.
func (s *Service) PersonalSections() []personal.Section {
	return []personal.Section{
		personal.Own(personal.About{Name: "preferences", Kind: personal.User, Endpoint: "GET /v1/profile/preferences"},
			personal.Slice(func(ctx context.Context, q store.Querier, of personal.Subject) ([]Preferences, error) {
				stored, err := selectPreferences(ctx, q, of.ID)
				return []Preferences{stored.withDefaults()}, err
			}), nil),
		personal.Own(personal.About{Name: "views", Kind: personal.User, Endpoint: "GET /v1/profile/views"},
			personal.Slice(func(ctx context.Context, q store.Querier, of personal.Subject) ([]View, error) {
				return selectViews(ctx, q, of.ID)
			}), nil),
		personal.Own(personal.About{Name: "pictures", Kind: personal.User, Endpoint: "GET /v1/profile"},
			personal.Slice(func(ctx context.Context, q store.Querier, of personal.Subject) ([]picture, error) {
				return store.All(ctx, q, scanPicture, selectPictures, of.ID)
			}),
			func(_ context.Context, _ store.Querier, p picture) (any, error) {
				return exportedPicture{p.pixels, p.mediaType, p.content}, nil
			}),
	}
}

// scanPicture reads a picture with its content.
func scanPicture(row store.Scanner) (p picture, err error) {
	err = row.Scan(&p.pixels, &p.token, &p.mediaType, &p.content)
	return p, err
}

const deletePreferences = `DELETE FROM profile_preferences WHERE user_id = $1`

// ErasePerson deletes preferences, saved views and pictures of a user.
func (s *Service) ErasePerson(ctx context.Context, tx *store.Tx, subject personal.Subject, cursor string) (string, error) {
	if subject.Kind != personal.User {
		return "", nil
	}
	return personal.Run(ctx, tx, cursor, personal.Once(func(ctx context.Context, tx *store.Tx) error {
		exists, err := proof.Exists(ctx, tx, subject.ID)
		if err != nil || !exists {
			return err
		}
		before, err := readProfile(ctx, tx, subject.ID)
		if err != nil {
			return err
		}
		for _, statement := range []string{deletePreferences, deleteViews, deleteAvatarStatement} {
			if _, err := tx.Exec(ctx, statement, subject.ID); err != nil {
				return err
			}
		}
		return proof.Audit(ctx, tx, personal.Action, subject.ID, before)
	}))
}
