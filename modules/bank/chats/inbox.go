package chats

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"kontor/modules/kit/list"
	"kontor/modules/kit/records"
	"kontor/modules/kit/types"
	"kontor/modules/kit/validate"
	"kontor/server/access"
	"kontor/server/apierr"
	"kontor/server/endpoint"
	"kontor/store"
)

// Customers write to the bank as a whole in one chat of the type support, which has a thread in the inbox of the staff. The staff see
// the thread: its state, who answers it, and internal notes. The chat shows none of that: neither its record, its version, its messages
// nor their number depend on the thread. A member of the staff takes part in the chat from their first answer on.

// ThreadState is the state of a thread of the inbox.
type ThreadState string

// The states.
const (
	ThreadOpen    ThreadState = "open"    // the bank must answer
	ThreadWaiting ThreadState = "waiting" // for the customer
	ThreadClosed  ThreadState = "closed"
)

// Values returns all states.
func (ThreadState) Values() []string {
	return []string{string(ThreadOpen), string(ThreadWaiting), string(ThreadClosed)}
}

// Thread is a conversation of a customer with the bank, as the staff see it.
type Thread struct {
	ID           string      `json:"id" doc:"The id of the chat."`
	UserID       string      `json:"user_id" doc:"The user who writes to the bank."`
	State        ThreadState `json:"state" doc:"open: the bank must answer; waiting: for the customer. A message of the customer opens the thread, an answer lets it wait."`
	Assignee     *string     `json:"assignee" doc:"Who answers the customer; null for none."`
	SnoozedUntil *store.Time `json:"snoozed_until" doc:"Until when the thread is left out of the open ones; a message of the customer ends it."`
	Preview      string      `json:"preview" doc:"The beginning of the last message."`
	CreatedAt    store.Time  `json:"created_at"`
	ChangedAt    store.Time  `json:"changed_at" doc:"When the customer or the staff last did something."`

	changedBy string
	version   int64
}

// EachUser names the customer and the assignee.
func (t Thread) EachUser(add func(id string)) {
	add(t.UserID)
	if t.Assignee != nil {
		add(*t.Assignee)
	}
}

// ETag returns the version of the thread.
func (t Thread) ETag() string { return endpoint.VersionTag(t.version) }

// Note is what a member of the staff has written about a thread for the others. Customers never read it.
type Note struct {
	ID        string     `json:"id"`
	ThreadID  string     `json:"thread_id"`
	AuthorID  string     `json:"author_id"`
	Content   string     `json:"content" maxLength:"10000"`
	CreatedAt store.Time `json:"created_at"`
}

// EachUser names the author.
func (n Note) EachUser(add func(id string)) { add(n.AuthorID) }

// checkTeam returns apierr.NoAccess unless the caller answers customers for the bank: they read all customers.
func checkTeam(ctx context.Context) error {
	if caller := access.From(ctx); caller.UserID == "" || !caller.May(access.Customers, access.ReadAll) {
		return apierr.NoAccess
	}
	return nil
}

// thread returns a thread that the caller may work on. A thread of their own does not exist for them.
func thread(ctx context.Context, q store.Querier, id string) (Thread, error) {
	if err := checkTeam(ctx); err != nil {
		return Thread{}, err
	}
	t, err := selectThread(ctx, q, id)
	if errors.Is(err, store.ErrNotFound) || err == nil && t.UserID == access.From(ctx).UserID {
		return Thread{}, apierr.ThreadNotFound
	}
	return t, err
}

// chatOfThread returns the chat of a thread that the caller may work on, and apierr.NoAccess for all other chats.
func chatOfThread(ctx context.Context, q store.Querier, id string) (chatState, error) {
	_, err := thread(ctx, q, id)
	switch {
	case errors.Is(err, apierr.ThreadNotFound):
		return chatState{}, apierr.NoAccess
	case err != nil:
		return chatState{}, err
	}
	return chatTable.GetUnchecked(ctx, q, id)
}

// WriteToBank returns the chat of the caller with the bank, and creates it with its thread if there is none.
func (s *Service) WriteToBank(ctx context.Context, _ endpoint.None) (endpoint.Result, error) {
	caller := access.From(ctx).UserID
	var result endpoint.Result
	err := s.db.InTx(ctx, func(tx *store.Tx) error {
		if err := s.requireActive(ctx, tx, caller); err != nil {
			return err
		}
		var id string
		err := tx.QueryRow(ctx, selectThreadOfUser, caller).Scan(&id)
		if err == nil {
			return s.answerBankChat(ctx, tx, id, &result)
		}
		if !errors.Is(err, store.ErrNotFound) {
			return err
		}
		c := newChat{id: store.NewID(), kind: Support, metadata: jsontext.Value("{}"), createdBy: caller, at: tx.Now()}
		if err := s.quota.Charge(ctx, tx, access.Chats, caller, 1, c.weight([]string{caller})); err != nil {
			return err
		}
		if err := insertChat(ctx, tx, c, []string{caller}); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, insertThreadStatement, c.id, caller, tx.Now()); err != nil {
			return err
		}
		if err := chatProof.Audit(ctx, tx, "chats.create", c.id, nil); err != nil {
			return err
		}
		if err := threadProof.Audit(ctx, tx, "chats.inbox.create", c.id, nil); err != nil {
			return err
		}
		result = endpoint.Result{Status: http.StatusCreated, Body: c.view([]string{caller})}
		tx.Respond(result)
		return nil
	})
	return result, err
}

// answerBankChat answers with the existing chat of the caller. A caller who has left it takes part again.
func (s *Service) answerBankChat(ctx context.Context, tx *store.Tx, id string, result *endpoint.Result) error {
	c, err := chatTable.GetUnchecked(ctx, tx, id)
	if err != nil {
		return err
	}
	if err := s.join(ctx, tx, &c, access.From(ctx).UserID); err != nil {
		return err
	}
	chat, err := s.view(ctx, tx, id)
	*result = endpoint.Result{Status: http.StatusOK, Body: chat}
	tx.Respond(*result)
	return err
}

// join adds a user to the participants of a chat if they are not among them. They have read what was written before.
func (s *Service) join(ctx context.Context, tx *store.Tx, c *chatState, userID string) error {
	if c.has(userID) {
		return nil
	}
	if len(c.participants) >= MaxParticipants {
		return apierr.ChatFull.With(apierr.Args{"Max": MaxParticipants})
	}
	return chatProof.Change(ctx, tx, "chats.participants.add", c.id, func() error {
		p := participant{userID: userID, readSeq: c.lastSeq}
		if err := insertParticipant(ctx, tx, c.id, p, access.From(ctx).UserID); err != nil {
			return err
		}
		c.participants = append(c.participants, p)
		_, err := tx.Exec(ctx, incrementVersion, c.id)
		return err
	})
}

// InboxInput holds the parameters of the list of threads.
type InboxInput struct {
	Query    list.Params `query:"*"`
	Customer *string     `query:"customer_id" format:"uuid" doc:"Only the threads of the user who has created the record of this customer."`
	View     string      `query:"view" enum:"open,waiting,closed,snoozed,mine" doc:"open: without those that are snoozed; mine: open or snoozed, and assigned to the caller. Without it: all."`

	customer string
}

// views are the values of the parameter view.
var inboxViews = []string{"open", "waiting", "closed", "snoozed", "mine"}

// Validate checks the view and the id.
func (in *InboxInput) Validate(v *apierr.Fields) {
	if in.Customer != nil {
		in.customer = validate.Parsed(v, "customer_id", *in.Customer, types.ParseID)
	}
	if in.View != "" && !slices.Contains(inboxViews, in.View) {
		v.Add("view", "invalid.one_of", apierr.Args{"Values": "open, waiting, closed, snoozed, mine"})
	}
}

// Inbox returns the threads of the inbox, without one of the caller. It returns apierr.NoAccess.
func (s *Service) Inbox(ctx context.Context, in InboxInput) (list.Page[Thread], error) {
	if err := checkTeam(ctx); err != nil {
		return list.Page[Thread]{}, err
	}
	caller := access.From(ctx).UserID
	where := []list.Where{{SQL: "inbox_threads.user_id <> $1", Args: []any{caller}}}
	if in.Customer != nil {
		where = append(where, list.Where{SQL: "inbox_threads.user_id IN (SELECT user_id FROM customer_users WHERE customer_id = $1)", Args: []any{in.customer}})
	}
	now := s.db.Now()
	switch in.View {
	case "open":
		where = append(where, list.Where{SQL: "inbox_threads.state = 'open' AND COALESCE(inbox_threads.snoozed_until, 0) <= $1", Args: []any{now}})
	case "waiting", "closed":
		where = append(where, list.Where{SQL: "inbox_threads.state = $1", Args: []any{in.View}})
	case "snoozed":
		where = append(where, list.Where{SQL: "inbox_threads.state <> 'closed' AND inbox_threads.snoozed_until > $1", Args: []any{now}})
	case "mine":
		where = append(where, list.Where{SQL: "inbox_threads.state <> 'closed' AND inbox_threads.assignee = $1", Args: []any{caller}})
	}
	return threadList.Page(ctx, s.db, in.Query, where...)
}

// Thread returns one thread. It returns apierr.ThreadNotFound and apierr.NoAccess.
func (s *Service) Thread(ctx context.Context, in OneInput) (Thread, error) {
	return thread(ctx, s.db, in.ID)
}

// ThreadMessages returns the messages of a thread, the newest first, as Messages does for participants. The audit trail gets an entry
// about a reader who does not take part.
func (s *Service) ThreadMessages(ctx context.Context, in MessagesInput) (endpoint.Result, error) {
	if _, err := thread(ctx, s.db, in.ID); err != nil {
		return endpoint.Result{}, err
	}
	c, err := chatTable.GetUnchecked(ctx, s.db, in.ID)
	if err != nil {
		return endpoint.Result{}, err
	}
	result, err := s.messagesOf(ctx, in, c)
	if result.Next != "" {
		result.Next = "/v1/inbox/" + result.Next[len("/v1/chats/"):]
	}
	return result, err
}

// Answer writes a message to the customer. The caller takes part in the chat from then on.
func (s *Service) Answer(ctx context.Context, in PostInput) (Message, error) {
	m := Message{ID: store.NewID(), ChatID: in.ID, SenderID: access.From(ctx).UserID, Type: Text,
		Content: in.Content, Metadata: in.metadata, ReadBy: []string{}, CreatedAt: s.db.Now()}
	err := s.db.InTx(ctx, func(tx *store.Tx) error {
		if _, err := thread(ctx, tx, in.ID); err != nil {
			return err
		}
		c, err := chatTable.GetUnchecked(ctx, tx, in.ID)
		if err != nil {
			return err
		}
		if err := s.join(ctx, tx, &c, m.SenderID); err != nil {
			return err
		}
		return s.post(ctx, tx, c, &m)
	})
	return m, err
}

// ThreadInput is a change of a thread. A missing member keeps its value.
type ThreadInput struct {
	ID           string                         `path:"id"`
	State        endpoint.Optional[ThreadState] `json:"state" nullable:"false"`
	Assignee     endpoint.Optional[string]      `json:"assignee" format:"uuid" doc:"A member of the staff; null for none."`
	SnoozedUntil endpoint.Optional[string]      `json:"snoozed_until" format:"date-time" doc:"A time within the next year; null ends the pause."`

	until store.Time
}

// Validate checks the members.
func (in *ThreadInput) Validate(v *apierr.Fields) {
	if in.State.Given && !slices.Contains(in.State.Value.Values(), string(in.State.Value)) {
		v.Add("state", "invalid.one_of", apierr.Args{"Values": "open, waiting, closed"})
	}
	if in.Assignee.Given && !in.Assignee.Null {
		in.Assignee.Value = validate.Parsed(v, "assignee", in.Assignee.Value, types.ParseID)
	}
	if in.SnoozedUntil.Given && !in.SnoozedUntil.Null {
		in.until = validate.Parsed(v, "snoozed_until", in.SnoozedUntil.Value, store.ParseTime)
	}
}

// maxSnooze is the longest pause of a thread.
const maxSnooze = 366 * 24 * time.Hour

// Update changes the state, the assignee or the pause of a thread. An assignee takes part in the chat from then on. It returns
// apierr.ThreadNotFound, apierr.NoAccess, apierr.PreconditionFailed, and apierr.InvalidInput for an assignee who does not answer customers
// and for a pause that ends in the past or too late.
func (s *Service) Update(ctx context.Context, in ThreadInput) (Thread, error) {
	var t Thread
	err := s.db.InTx(ctx, func(tx *store.Tx) error {
		before, err := thread(ctx, tx, in.ID)
		if err != nil {
			return err
		}
		if err := endpoint.CheckMatch(ctx, before.ETag()); err != nil {
			return err
		}
		t = before
		t.State = in.State.Or(t.State)
		if in.SnoozedUntil.Given {
			t.SnoozedUntil = nil
			if !in.SnoozedUntil.Null {
				if in.until <= tx.Now() || in.until > store.TimeOf(tx.Now().Std().Add(maxSnooze)) {
					return apierr.Invalid("snoozed_until", "chats.snooze_time")
				}
				t.SnoozedUntil = &in.until
			}
		}
		if in.Assignee.Given {
			t.Assignee = endpoint.NonEmpty(in.Assignee.Or(""))
			if err := s.assign(ctx, tx, t); err != nil {
				return err
			}
		}
		return s.saveThread(ctx, tx, before, &t)
	})
	return t, err
}

// assign lets the assignee of a thread take part in its chat.
func (s *Service) assign(ctx context.Context, tx *store.Tx, t Thread) error {
	if t.Assignee == nil {
		return nil
	}
	active, err := s.directory.Active(ctx, tx, *t.Assignee)
	if err != nil {
		return err
	}
	answers, err := answersCustomers(ctx, tx, *t.Assignee)
	if err != nil {
		return err
	}
	if !active[*t.Assignee] || !answers || *t.Assignee == t.UserID {
		return apierr.Invalid("assignee", "invalid.unknown_record")
	}
	c, err := chatTable.GetUnchecked(ctx, tx, t.ID)
	if err != nil {
		return err
	}
	return s.join(ctx, tx, &c, *t.Assignee)
}

// saveThread writes a changed thread; one without a change stays as it is.
func (s *Service) saveThread(ctx context.Context, tx *store.Tx, before Thread, t *Thread) error {
	if same := t.State == before.State && equal(t.Assignee, before.Assignee) && equal(t.SnoozedUntil, before.SnoozedUntil); same {
		return nil
	}
	return writeThread(ctx, tx, before, t)
}

func writeThread(ctx context.Context, tx *store.Tx, before Thread, t *Thread) error {
	t.ChangedAt, t.changedBy, t.version = tx.Now(), access.From(ctx).UserID, before.version+1
	return threadProof.ChangeRow(ctx, tx, "chats.inbox.update", t.ID,
		updateThreadStatement, t.ID, string(t.State), t.Assignee, t.SnoozedUntil, t.ChangedAt, t.changedBy, t.version)
}

func equal[T comparable](one, other *T) bool {
	return one == nil && other == nil || one != nil && other != nil && *one == *other
}

// followMessage stores what a new message means for the thread of a chat: the bank must answer the customer, or it has. Each message
// changes the thread, so that it is the newest one, and a member of the staff who has not seen it yet does not close the thread.
func (s *Service) followMessage(ctx context.Context, tx *store.Tx, c chatState, sender string) error {
	if c.kind != Support {
		return nil
	}
	before, err := selectThread(ctx, tx, c.id)
	if errors.Is(err, store.ErrNotFound) {
		return nil // a chat of this type without a thread, which staff have created
	}
	if err != nil {
		return err
	}
	answers := false
	if sender != before.UserID {
		if answers, err = answersCustomers(ctx, tx, sender); err != nil {
			return err
		}
	}
	t := before
	t.State, t.SnoozedUntil = ThreadOpen, nil
	if answers {
		t.State = ThreadWaiting
		if t.Assignee == nil {
			t.Assignee = &sender
		}
	}
	return writeThread(ctx, tx, before, &t)
}

const maxNote = 10_000 // characters, as of a message

// NoteInput is a new note.
type NoteInput struct {
	ID      string `path:"id"`
	Content string `json:"content" minLength:"1" maxLength:"10000"`
}

// Validate checks the text.
func (in *NoteInput) Validate(v *apierr.Fields) {
	in.Content = validate.RequiredText(v, "content", in.Content, maxNote)
}

// AddNote writes a note about a thread. It returns apierr.ThreadNotFound and apierr.NoAccess.
func (s *Service) AddNote(ctx context.Context, in NoteInput) (Note, error) {
	n := Note{ID: store.NewID(), ThreadID: in.ID, AuthorID: access.From(ctx).UserID, Content: in.Content}
	err := s.db.InTx(ctx, func(tx *store.Tx) error {
		if _, err := thread(ctx, tx, in.ID); err != nil {
			return err
		}
		if err := s.requireActive(ctx, tx, n.AuthorID); err != nil {
			return err
		}
		if err := s.quota.Charge(ctx, tx, access.Chats, n.AuthorID, 1, records.Weight(n.Content)); err != nil {
			return err
		}
		n.CreatedAt = tx.Now()
		if _, err := tx.Exec(ctx, insertNoteStatement, n.ID, n.ThreadID, n.AuthorID, n.Content, n.CreatedAt); err != nil {
			return err
		}
		if err := noteProof.Audit(ctx, tx, "chats.inbox.note", n.ID, nil); err != nil {
			return err
		}
		tx.Respond(n)
		return nil
	})
	return n, err
}

// notesInput holds the parameters of the list of notes.
type notesInput struct {
	ID    string      `path:"id"`
	Query list.Params `query:"*"`
}

// Notes returns the notes about a thread. It returns apierr.ThreadNotFound and apierr.NoAccess.
func (s *Service) Notes(ctx context.Context, in notesInput) (list.Page[Note], error) {
	if _, err := thread(ctx, s.db, in.ID); err != nil {
		return list.Page[Note]{}, err
	}
	return noteList.Page(ctx, s.db, in.Query, list.Where{SQL: "chat_id = $1", Args: []any{in.ID}})
}
