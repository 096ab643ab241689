package notifications

import (
	"encoding/base64"
	"strconv"
	"strings"

	"github.com/google/uuid"

	"kontor/store"
)

const (
	// maxKeyUsers is how many recipients a key names. All keys of a group of commits share a bounded size.
	maxKeyUsers = 16
	// anyUser stands for the recipients of an event that has more.
	anyUser = "*"
)

// feedKey returns the key with which an event is announced to other nodes: its time, so that they find it by an index, and its
// recipients, so that a node without a stream of theirs need not read it.
func feedKey(at store.Time, recipients []string) string {
	key := strconv.FormatInt(int64(at), 36)
	if len(recipients) > maxKeyUsers {
		return key + "." + anyUser
	}
	var b strings.Builder
	b.WriteString(key)
	for _, user := range recipients {
		id, err := uuid.Parse(user)
		if err != nil || id.String() != user {
			return key + "." + anyUser
		}
		b.WriteByte('.')
		b.WriteString(base64.RawURLEncoding.EncodeToString(id[:]))
	}
	return b.String()
}

// parseFeedKey reads a key. It reports false for a text that is not a key.
func parseFeedKey(key string) (at store.Time, users []string, all, ok bool) {
	parts := strings.Split(key, ".")
	moment, err := strconv.ParseInt(parts[0], 36, 64)
	if err != nil || moment < 0 || len(parts) < 2 || len(parts) > maxKeyUsers+1 {
		return 0, nil, false, false
	}
	if len(parts) == 2 && parts[1] == anyUser {
		return store.Time(moment), nil, true, true
	}
	for _, part := range parts[1:] {
		raw, err := base64.RawURLEncoding.DecodeString(part)
		if err != nil {
			return 0, nil, false, false
		}
		id, err := uuid.FromBytes(raw)
		if err != nil {
			return 0, nil, false, false
		}
		users = append(users, id.String())
	}
	return store.Time(moment), users, false, true
}
