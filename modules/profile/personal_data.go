package profile

import (
	"context"
	"fmt"

	"kontor/modules/kit/personal"
	"kontor/store"
)

// PersonalData lists the tables of the module.
func (s *Service) PersonalData() []personal.Table {
	return []personal.Table{
		{Name: "profile_preferences", Holds: "how the console shows dates, amounts and colours to a user"},
		{Name: "list_views", Holds: "the lists of the console that a user has saved"},
		{Name: "avatars", Holds: "the picture of a user in two sizes"},
	}
}

// exportedPicture is a picture in an export. Its content is written in base64.
type exportedPicture struct {
	Pixels    int64  `json:"pixels"`
	MediaType string `json:"media_type"`
	Content   []byte `json:"content"`
}

// ExportPerson writes preferences, saved views and pictures of a user.
func (s *Service) ExportPerson(ctx context.Context, q store.Querier, subject personal.Subject, w *personal.Writer) error {
	if subject.Kind != personal.User {
		return nil
	}
	stored, err := selectPreferences(ctx, q, subject.ID)
	if err != nil {
		return err
	}
	if err := w.Add("preferences", stored.withDefaults()); err != nil {
		return err
	}
	views, err := selectViews(ctx, q, subject.ID)
	if err != nil {
		return err
	}
	for _, view := range views {
		if err := w.Add("views", view); err != nil {
			return err
		}
	}
	pictures, err := store.All(ctx, q, scanPicture, selectPictures, subject.ID)
	if err != nil {
		return fmt.Errorf("read pictures: %w", err)
	}
	for _, p := range pictures {
		if err := w.Add("pictures", exportedPicture{p.pixels, p.mediaType, p.content}); err != nil {
			return err
		}
	}
	return nil
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
