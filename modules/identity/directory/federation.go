package directory

import (
	"context"
	"errors"
	"slices"

	"kontor/modules/kit/records"
	"kontor/modules/kit/types"
	"kontor/server/access"
	"kontor/server/apierr"
	"kontor/store"
)

// FederatedUser describes a user whom the operator's sign-in provider introduces: active at once, without a password.
type FederatedUser struct {
	Email       string // validated by the provider
	DisplayName string // left out if it is not well-formed
	Language    string // a language tag such as de-CH; unknown ones count as English
	Roles       []string
}

// never is the time from which the address of a federated user may recover the account. Otherwise people whose account at the
// provider was closed could set a password. An administrator can set one.
const never = store.Time(253402300799000) // the end of the year 9999

// CreateFederated stores a user without a password. It returns apierr.CredentialExists.
func (s *Service) CreateFederated(ctx context.Context, tx *store.Tx, n FederatedUser) (userID string, err error) {
	id, err := parseIdentifier(Email, n.Email)
	if err != nil {
		return "", err
	}
	u := User{ID: store.NewID(), Status: Active, Language: types.English.String()}
	if name, err := types.ParseDisplayName(n.DisplayName); err == nil && n.DisplayName != "" {
		u.DisplayName = name
	}
	if len(n.Language) >= 2 {
		if language, err := types.ParseLanguage(n.Language[:2]); err == nil {
			u.Language = language.String()
		}
	}
	c := newCredential(u.ID, id)
	c.Validated, c.trustedFrom = true, never
	return u.ID, s.add(ctx, tx, &u, &c, "", n.Roles, records.Actor(ctx))
}

// SyncRoles gives a user those of the managed roles that are wanted, and takes the others; all are ids. The last administrator
// keeps that role: keptAdministrator reports it.
func (s *Service) SyncRoles(ctx context.Context, tx *store.Tx, userID string, managed, wanted []string) (keptAdministrator bool, err error) {
	u, err := userTable.GetUnchecked(ctx, tx, userID)
	if err != nil {
		return false, err
	}
	now, err := assignedTo(ctx, tx, userID)
	if err != nil {
		return false, err
	}
	target := slices.Clone(wanted)
	for _, a := range now {
		role := a.roleID
		if !a.inForce {
			continue
		}
		if !slices.Contains(managed, role) && !slices.Contains(target, role) {
			target = append(target, role)
		}
	}
	if !slices.Contains(target, access.Administrator) {
		err := s.keepAdministrator(ctx, tx, u)
		if errors.Is(err, apierr.LastAdministrator) {
			keptAdministrator, err = true, nil
			target = append(target, access.Administrator)
		}
		if err != nil {
			return false, err
		}
	}
	_, err = s.assign(ctx, tx, u, wantedRoles(now, target, nil), func(string) bool { return true })
	return keptAdministrator, err
}
