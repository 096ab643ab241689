package auth

import (
	"context"
	"slices"
	"strings"

	"kontor/modules/kit/types"
	"kontor/store"
)

const (
	selectHeldRoles = `
		SELECT r.role_id, COALESCE(n.name_key, '')
		FROM held_roles r
		LEFT JOIN role_names n ON n.id = r.role_id
		WHERE r.user_id = $1`

	countRoles = `SELECT count(*) FROM role_names WHERE id = $1 OR name_key = $2`

	insertDuty = `INSERT INTO factor_duties (user_id, since) VALUES ($1, $2) ON CONFLICT (user_id) DO NOTHING`

	deleteDuty = `DELETE FROM factor_duties WHERE user_id = $1`
)

// requires reports whether a role is one of auth.mfa.required_roles.
func (s *Service) requires(id, nameKey string) bool {
	return slices.ContainsFunc(s.options.RequiredRoles, func(wanted string) bool {
		return strings.EqualFold(wanted, id) || nameKey != "" && types.Fold(wanted) == nameKey
	})
}

// updateDuty records since when a user without a second factor has needed one, at each sign-in and refresh. A role requires it once
// any of its users has one.
func (s *Service) updateDuty(ctx context.Context, tx *store.Tx, userID string) error {
	if s.Peers.Factors == nil || len(s.options.RequiredRoles) == 0 {
		return nil
	}
	methods, err := s.Peers.Factors.Methods(ctx, tx, userID)
	if err != nil || len(methods) > 0 {
		return err
	}
	roles, err := s.requiredRoles(ctx, tx, userID)
	if err != nil {
		return err
	}
	due := false
	if len(roles) > 0 {
		if due, err = s.Peers.Factors.InUse(ctx, tx, roles); err != nil {
			return err
		}
	}
	var changed int64
	if due {
		changed, err = tx.Exec(ctx, insertDuty, userID, tx.Now())
	} else {
		changed, err = tx.Exec(ctx, deleteDuty, userID)
	}
	if changed > 0 {
		s.drop(tx, userID) // the other sessions have it in memory
	}
	return err
}

// WarnOfUnknownRoles logs every entry of auth.mfa.required_roles that names no role: a misspelt one would require nothing.
func (s *Service) WarnOfUnknownRoles(ctx context.Context) error {
	for _, wanted := range s.options.RequiredRoles {
		var n int
		if err := s.db.QueryRow(ctx, countRoles, strings.ToLower(wanted), types.Fold(wanted)).Scan(&n); err != nil {
			return err
		}
		if n == 0 {
			s.options.Log.Warn("auth.mfa.required_roles names a role that does not exist", "role", wanted)
		}
	}
	return nil
}

// requiredRoles returns the ids of a user's roles that require a second factor.
func (s *Service) requiredRoles(ctx context.Context, q store.Querier, userID string) ([]string, error) {
	rows, err := q.Query(ctx, selectHeldRoles, userID)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var ids []string
	for rows.Next() {
		var id, name string
		if err := rows.Scan(&id, &name); err != nil {
			return nil, err
		}
		if s.requires(id, name) {
			ids = append(ids, id)
		}
	}
	return ids, rows.Err()
}

// completeCaller adds to a caller whether they have a second factor, or by when they must enrol one.
func (s *Service) completeCaller(ctx context.Context, row activeRow) error {
	methods, err := s.factorMethods(ctx, s.db, row.caller.UserID)
	if err != nil {
		return err
	}
	row.caller.SignedIn.HasFactor = len(methods) > 0
	if len(methods) > 0 || row.dutySince == nil || s.Peers.Factors == nil {
		return nil
	}
	for i, name := range row.roleNames {
		if s.requires(row.caller.Roles[i], name) {
			row.caller.SignedIn.EnrolBy = row.dutySince.Add(s.options.FactorGrace).Std()
		}
	}
	return nil
}
