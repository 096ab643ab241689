package notifications

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"kontor/modules/kit/event"
	"kontor/server/access"
	"kontor/server/endpoint"
	"kontor/server/sse"
	"kontor/store"
)

// Chats provides the messages that frames carry.
type Chats interface {
	// ReadableMessages returns the messages by id, with the participants of their chats.
	ReadableMessages(ctx context.Context, q store.Querier, ids []string) (map[string]event.ReadableMessage, error)
}

// maxFrameText is how many characters of a message a frame carries. Streams keep frames in memory until their clients
// have read them; clients read the rest of a long message from the chat.
const maxFrameText = 2000

// readMessagesEndpoint is the endpoint that a caller must be allowed to call to get the texts of messages in frames.
const readMessagesEndpoint = "GET /v1/chats/{id}/messages"

// chatMember is the member chat of a frame: the message that the notification is about.
type chatMember struct {
	ChatID    string     `json:"chat_id"`
	MessageID string     `json:"message_id"`
	Type      string     `json:"type"`
	Text      string     `json:"text"`
	Truncated bool       `json:"truncated,omitzero"` // text holds only the beginning of the message
	CreatedBy string     `json:"created_by"`
	CreatedAt store.Time `json:"created_at"`
}

// peopleByID is the member people of a frame.
type peopleByID map[string]endpoint.Person

// frameMessage is a chat message with what is known of its author.
type frameMessage struct {
	event.ChatMessage
	people peopleByID
}

// audience says what a reader may see in a frame. Frames of one notification for readers with the same audience differ
// only in the ids of the copies.
type audience struct {
	language string
	messages bool // chat messages
	staff    bool // user names
}

// audienceOf returns what the caller of a stream may see, from memory alone. Streams of other notifications than those
// about messages differ only in their languages.
func (s *Service) audienceOf(stream *sse.Stream, aboutMessage bool) audience {
	a := audience{language: stream.Language}
	if aboutMessage {
		caller := s.streams.Caller(stream)
		a.messages, a.staff = caller.MayCall(readMessagesEndpoint), caller.Staff()
	}
	return a
}

// addMessage adds the members chat and people for an audience.
func (s *Service) addMessage(data *frameData, m *frameMessage, a audience) {
	if m == nil || !a.messages {
		return
	}
	kind, text := "text", m.Text
	if m.TextKey != "" {
		kind, text = "system", s.texts.Text(a.language, m.TextKey, nil)
	}
	data.Chat = &chatMember{ChatID: m.ChatID, MessageID: m.ID, Type: kind, CreatedBy: m.CreatedBy, CreatedAt: store.TimeOf(m.CreatedAt)}
	data.Chat.Text, data.Chat.Truncated = truncate(text, maxFrameText)
	data.People = make(peopleByID, len(m.people))
	if person, known := m.people[m.CreatedBy]; known {
		if !a.staff {
			person.UserName = ""
		}
		data.People[m.CreatedBy] = person
	}
}

// truncate returns the first n characters of a text, and whether there are more.
func truncate(text string, n int) (string, bool) {
	for i := range text {
		if n--; n < 0 {
			return text[:i], true
		}
	}
	return text, false
}

// liveMessage returns the message of an event for the frames of its recipients, or nil. It looks the author up once for all
// of them, and only if one of them has an open stream.
func (s *Service) liveMessage(parent parentEvent, recipients []string) *frameMessage {
	if parent.chatMessage == nil || s.Peers.Directory == nil || !s.streams.Connected(recipients) {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), readTime)
	defer cancel()
	people, err := s.peopleForStaff(ctx, parent.chatMessage.CreatedBy)
	if err != nil {
		s.options.Log.Warn("the frames of a message lack the name of its author", "cause", err)
	}
	return &frameMessage{ChatMessage: *parent.chatMessage, people: people}
}

// peopleForStaff looks users up with the user names that only staff may see: frames for staff and for others are made of the
// same look-up. [Service.addMessage] removes the user names for others.
func (s *Service) peopleForStaff(ctx context.Context, ids ...string) (peopleByID, error) {
	staff := access.Caller{Roles: []string{access.Administrator}, UserID: store.NilID}.WithPolicy(s.options.Policy.Load())
	return s.Peers.Directory.People(access.With(ctx, staff), ids)
}

// replayedMessages reads the messages that copies of one user are about, with their authors, by the ids of the messages.
// Messages that the user may no longer read are missing.
func (s *Service) replayedMessages(ctx context.Context, stream *sse.Stream, copies []Listed) (map[string]*frameMessage, error) {
	var ids []string
	for i := range copies {
		if id := copies[i].chatMessageID; id != "" {
			ids = append(ids, id)
		}
	}
	if len(ids) == 0 || s.Peers.Chats == nil || !s.streams.Caller(stream).MayCall(readMessagesEndpoint) {
		return nil, nil
	}
	read, err := s.messagesWithAuthors(ctx, ids)
	if err != nil {
		return nil, err
	}
	found := make(map[string]*frameMessage, len(read.messages))
	for id, m := range read.messages {
		if m.Readers[stream.User] {
			found[id] = &frameMessage{ChatMessage: m.ChatMessage, people: read.people}
		}
	}
	return found, nil
}

// streamCounts keeps in the database how many streams each user has open on this node, so that the limit of a user holds over all
// nodes. On a database of one process the hub alone counts, and nothing is stored.
//
// The count over all nodes is exact when a stream opens, because transactions run one after another. It includes streams that have
// ended within the last milliseconds, and those of a killed node for some seconds, until [Service.ReleaseNodes] deletes its counts.
type streamCounts struct {
	service *Service
	node    string // id

	mu      sync.Mutex
	changed map[string]struct{} // users whose stored count may be too high
	running bool
	closed  bool
	idle    sync.WaitGroup // done when no goroutine writes
}

const (
	sumOtherStreams = `SELECT CAST(COALESCE(SUM(streams), 0) AS BIGINT) FROM open_streams WHERE user_id = $1 AND node_id <> $2`

	upsertStreams = `
	INSERT INTO open_streams (user_id, node_id, streams) VALUES ($1, $2, $3)
	ON CONFLICT (user_id, node_id) DO UPDATE SET streams = excluded.streams`

	deleteStreams = `DELETE FROM open_streams WHERE user_id = $1 AND node_id = $2`

	deleteStreamsOfNode = `DELETE FROM open_streams WHERE node_id = $1`

	// It is followed by ids of nodes and a closing bracket.
	deleteStreamsOfNodes = `DELETE FROM open_streams WHERE node_id IN (`

	selectStreamUsers = `SELECT DISTINCT user_id FROM open_streams`
)

const (
	countBatch = 128 // users in one transaction
	countPause = 200 * time.Millisecond
	countTime  = 5 * time.Second
)

// admit counts a stream that the hub has opened, before anything is written to it. It returns sse.ErrTooMany if the user has too
// many on all nodes together.
func (c *streamCounts) admit(stream *sse.Stream) error {
	if !c.service.db.Shared() {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), countTime) // not the request's, which may have an idempotency key
	defer cancel()
	user, limit := stream.User, int64(c.service.options.ConnectionsPerUser)
	return c.service.db.InTx(ctx, func(tx *store.Tx) error {
		var others int64
		if err := tx.QueryRow(ctx, sumOtherStreams, user, c.node).Scan(&others); err != nil {
			return fmt.Errorf("count the streams of a user: %w", err)
		}
		own := int64(c.service.streams.Count(user))
		if own+others > limit {
			return sse.ErrTooMany
		}
		return tx.Run(ctx, upsertStreams, user, c.node, own)
	})
}

// liveNodes returns the ids of the nodes with a lease, and that of this node.
func liveNodes(db *store.DB) []string {
	var ids []string
	for _, n := range db.Nodes() {
		if n.Live || n.Self {
			ids = append(ids, n.ID)
		}
	}
	return ids
}

// ended stores the count of a user whose stream has ended, in the background.
func (c *streamCounts) ended(user string) {
	if !c.service.db.Shared() {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return
	}
	c.changed[user] = struct{}{}
	if !c.running {
		c.running = true
		c.idle.Go(c.run)
	}
}

// run stores changed counts until none remain.
func (c *streamCounts) run() {
	for {
		users, ok := c.take()
		if !ok {
			return
		}
		ctx, cancel := context.WithTimeout(context.Background(), countTime)
		err := c.store(ctx, users)
		cancel()
		if err != nil {
			c.service.options.Log.Warn("could not store how many streams users have", "cause", err)
			c.putBack(users)
			<-time.After(countPause)
		}
	}
}

func (c *streamCounts) take() (users []string, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for user := range c.changed {
		if len(users) == countBatch {
			break
		}
		users = append(users, user)
		delete(c.changed, user)
	}
	c.running = len(users) > 0 && !c.closed
	return users, c.running
}

func (c *streamCounts) putBack(users []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, user := range users {
		c.changed[user] = struct{}{}
	}
}

// store stores the counts that the hub has now.
func (c *streamCounts) store(ctx context.Context, users []string) error {
	return c.service.db.InTx(ctx, func(tx *store.Tx) error {
		for _, user := range users {
			statement, args := deleteStreams, []any{user, c.node}
			if n := c.service.streams.Count(user); n > 0 {
				statement, args = upsertStreams, append(args, int64(n))
			}
			if _, err := tx.Exec(ctx, statement, args...); err != nil {
				return err
			}
		}
		return nil
	})
}

// close deletes the counts of this node. Call it when the streams have ended.
func (c *streamCounts) close(ctx context.Context) {
	c.mu.Lock()
	already := c.closed
	c.closed = true
	c.mu.Unlock()
	c.idle.Wait()
	if already || !c.service.db.Shared() {
		return
	}
	err := c.service.db.InTx(ctx, func(tx *store.Tx) error { return tx.Run(ctx, deleteStreamsOfNode, c.node) })
	if err != nil { // another node deletes them when the lease of this one has ended
		c.service.options.Log.Warn("could not delete the number of open streams", "cause", err)
	}
}

// usersOfAllNodes returns the users with an open stream on any node, and for some seconds those of a node that was killed.
func (c *streamCounts) usersOfAllNodes(ctx context.Context) ([]string, error) {
	if !c.service.db.Shared() {
		return c.service.streams.Users(), nil
	}
	return store.All(ctx, c.service.db, store.Text, selectStreamUsers)
}

// timestamps returns the creation times of events. They never decrease within a database, even if the clock is set back or
// the process restarts, and ids grow within a process. Creation time and id therefore are the order of the commits, by
// which streams resume.
//
// Ids of two nodes have no order. So on a database that several nodes share, the events of a group of commits are later than
// all events before the group: by a millisecond at least.
type timestamps struct {
	last   atomic.Int64
	recall atomic.Uint64 // the value of Tx.Recall for which last is valid on a shared database
}

// next returns the creation time of an event that the transaction writes. Transactions run one after another, so the order
// of the times is that of the commits.
func (t *timestamps) next(ctx context.Context, tx *store.Tx) (store.Time, error) {
	last := store.Time(t.last.Load())
	if last == 0 {
		if err := tx.QueryRow(ctx, selectLatest).Scan(&last); err != nil {
			return 0, fmt.Errorf("read the latest notification: %w", err)
		}
		last++ // an id from before the restart may be greater than the next ones
	}
	now := max(tx.Now(), last)
	t.last.Store(int64(now))
	return now, nil
}

// selectLatestShared also returns the time of a deleted event, which streams may have reached, and that of a database that was
// copied from one without the row.
const selectLatestShared = `
	SELECT MAX(at) FROM (
		SELECT latest AS at FROM notice_clock
		UNION ALL
		SELECT COALESCE(MAX(created_at), 0) AS at FROM notifications WHERE deleted = FALSE
	) AS moments`

const upsertLatest = `
	INSERT INTO notice_clock (id, latest) VALUES (1, $1)
	ON CONFLICT (id) DO UPDATE SET latest = excluded.latest`

// nextShared is next on a database that several nodes share. The latest time is read once for each group of commits.
func (t *timestamps) nextShared(ctx context.Context, tx *store.Tx) (store.Time, error) {
	last, recall := store.Time(t.last.Load()), tx.Recall()
	if last == 0 || t.recall.Load() != recall {
		if err := tx.QueryRow(ctx, selectLatestShared).Scan(&last); err != nil {
			return 0, fmt.Errorf("read the latest notification: %w", err)
		}
		last++ // another node may have used the time
	}
	now := max(tx.Now(), last)
	if _, err := tx.Exec(ctx, upsertLatest, now); err != nil {
		return 0, fmt.Errorf("write the time of the latest notification: %w", err)
	}
	t.last.Store(int64(now))
	t.recall.Store(recall)
	return now, nil
}
