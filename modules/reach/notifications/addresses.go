package notifications

import (
	"context"
	"fmt"

	"kontor/modules/kit/types"
	"kontor/store"
)

// addresses returns the addresses of the active users for the channels: the first of each user and channel, or all.
func (s *Service) addresses(ctx context.Context, q store.Querier, userIDs, channels []string, all bool) ([]types.Address, error) {
	if s.Peers.Directory == nil || len(userIDs) == 0 {
		return nil, nil
	}
	known, err := s.Peers.Directory.Addresses(ctx, q, userIDs...)
	if err != nil {
		return nil, fmt.Errorf("read addresses: %w", err)
	}
	wanted := map[string]bool{}
	for _, channel := range channels {
		wanted[channel] = true
	}
	type reached struct{ userID, channel string }
	seen := map[reached]bool{}
	found := known[:0]
	for _, a := range known {
		if key := (reached{a.UserID, a.Channel}); wanted[a.Channel] && (all || !seen[key]) {
			seen[key] = true
			found = append(found, a)
		}
	}
	return found, nil
}
