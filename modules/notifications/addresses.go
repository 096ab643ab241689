package notifications

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"kontor/store"
)

// address is where a user can be reached by a channel, and in which language.
type address struct {
	userID, channel, value, language string
}

// addressBatch is how many users one statement asks for. A shorter list is filled up.
const addressBatch = 64

var selectAddresses = func() string {
	numbers := make([]string, addressBatch)
	for i := range numbers {
		numbers[i] = "$" + strconv.Itoa(i+1)
	}
	return `
	SELECT c.user_id, c.type, c.value, u.language
	FROM credentials c
	JOIN users u ON u.id = c.user_id
	WHERE c.user_id IN (` + strings.Join(numbers, ", ") + `)
		AND c.validated = TRUE AND c.type IN ('email', 'phone') AND u.status = 'active'
	ORDER BY c.user_id, c.created_at, c.id`
}()

// channelOf is the channel that leads to a type of credential.
var channelOf = map[string]string{"email": Email, "phone": SMS}

// addresses finds the first validated address of each active user for each of the channels, or all of them.
func addresses(ctx context.Context, q store.Querier, userIDs, channels []string, all bool) ([]address, error) {
	wanted := map[string]bool{}
	for _, channel := range channels {
		wanted[channel] = true
	}
	var found []address
	for len(userIDs) > 0 {
		n := min(len(userIDs), addressBatch)
		args := make([]any, addressBatch)
		for i := range args {
			args[i] = userIDs[min(i, n-1)]
		}
		userIDs = userIDs[n:]
		part, err := addressesOf(ctx, q, args, wanted, all)
		if err != nil {
			return nil, fmt.Errorf("read addresses: %w", err)
		}
		found = append(found, part...)
	}
	return found, nil
}

func addressesOf(ctx context.Context, q store.Querier, args []any, wanted map[string]bool, all bool) ([]address, error) {
	rows, err := q.Query(ctx, selectAddresses, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	type reached struct{ userID, channel string }
	seen := map[reached]bool{}
	var found []address
	for rows.Next() {
		var a address
		var credential string
		if err := rows.Scan(&a.userID, &credential, &a.value, &a.language); err != nil {
			return nil, err
		}
		a.channel = channelOf[credential]
		if key := (reached{a.userID, a.channel}); wanted[a.channel] && (all || !seen[key]) {
			seen[key] = true
			found = append(found, a)
		}
	}
	return found, rows.Err()
}
