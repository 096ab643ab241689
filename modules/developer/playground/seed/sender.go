package seed

import (
	"context"
	"errors"
	"net"
	"net/http"
	"time"

	"github.com/valyala/fasthttp/fasthttputil"

	"kontor/server/access"
	"kontor/store"
)

// Front serves the API of the bank.
type Front interface {
	Serve(listener net.Listener) error
}

// sender sends the requests of steps to a server of the process, in memory. Their connections are of no address, so that the paths of the
// sandbox do not exist for them.
type sender struct {
	*Service
	ids      *ids
	caller   string // the user who sends what no step sends
	client   *http.Client
	stop     func()
	sessions map[string]session // by user id
}

// session is one of a user for steps.
type session struct {
	token  string
	opened time.Time
}

// sessionTime is how long steps use a session: less than an access token lives, and than a sign-in is fresh.
const sessionTime = 2 * time.Minute

func (s *Service) openSender(i *ids) (*sender, error) {
	front, err := s.Front()
	if err != nil {
		return nil, err
	}
	d := &sender{Service: s, ids: i, sessions: map[string]session{}}
	d.client, d.stop = Serve(front)
	return d, nil
}

// Serve serves the API in memory, to a client whose connections are of no address. stop ends the server. It does not drain it, which would
// end the streams of the modules.
func Serve(front Front) (client *http.Client, stop func()) {
	listener, ended := fasthttputil.NewInmemoryListener(), make(chan struct{})
	client = &http.Client{
		Transport:     &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) { return listener.Dial() }},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	go func() {
		defer close(ended)
		_ = front.Serve(listener) // the error reports that the listener was closed
	}()
	return client, func() {
		client.CloseIdleConnections()
		_ = listener.Close() // cannot fail: the listener is in memory
		<-ended
	}
}

// close ends the sessions, which would soon end others of their users, and the server.
func (d *sender) close() {
	d.ids.set(true)
	for _, open := range d.sessions {
		d.signOut(open)
	}
	d.stop()
}

// signOut ends a session. One that a step has ended, or the time, is no error.
func (d *sender) signOut(open session) {
	ctx, cancel := context.WithTimeout(context.Background(), stepTime)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://kontor.localhost/v1/logout", http.NoBody)
	if err != nil {
		return
	}
	request.Header.Set("Authorization", "Bearer "+open.token)
	if response, err := d.client.Do(request); err == nil {
		response.Body.Close()
	}
}

// Send sends a request as a user.
func (d *sender) Send(ctx context.Context, userID string, request *http.Request) (*http.Response, error) {
	if userID == "" {
		return d.client.Do(request)
	}
	token, err := d.session(ctx, userID)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Authorization", "Bearer "+token)
	response, err := d.client.Do(request)
	if err == nil && response.StatusCode == http.StatusUnauthorized {
		delete(d.sessions, userID) // an earlier step may have ended it
	}
	return response, err
}

// session returns the token of a session of a user.
func (d *sender) session(ctx context.Context, userID string) (string, error) {
	at := d.DB.Clock().Now()
	if open, ok := d.sessions[userID]; ok {
		if at.Sub(open.opened) < sessionTime {
			return open.token, nil
		}
		delete(d.sessions, userID)
		_ = d.ids.aside(func() error { d.signOut(open); return nil })
	}
	active, err := d.People.ActivePeople(ctx, d.DB, userID)
	if err != nil {
		return "", err
	}
	if !active[userID] {
		return "", ErrStranger
	}
	open := session{opened: at}
	err = d.ids.aside(func() (err error) {
		open.token, err = d.openSession(ctx, userID)
		return err
	})
	if err != nil {
		return "", err
	}
	d.sessions[userID] = open
	return open.token, nil
}

// openSession returns the token of a new session of a user.
func (s *Service) openSession(ctx context.Context, userID string) (token string, err error) {
	err = s.DB.InTx(ctx, func(tx *store.Tx) (err error) {
		token, _, err = s.Sessions.OpenSession(ctx, tx, userID)
		return err
	})
	return token, err
}

// AdministratorToken returns the token of a new session of the first administrator, for commands of those who may read the data directory.
func (s *Service) AdministratorToken(ctx context.Context) (string, error) {
	id, err := s.find(ctx, access.Administrator)
	if err != nil {
		return "", err
	}
	return s.openSession(ctx, id)
}

// selectHolder reads the first user who has a role, by its id or name.
const selectHolder = `
	SELECT MIN(h.user_id) FROM held_roles h JOIN role_names r ON r.id = h.role_id JOIN people p ON p.id = h.user_id
	WHERE (r.id = $1 OR r.name = $1) AND p.status = 'active'`

// find returns the id of the user with a login, or of the first user with a role.
func (s *Service) find(ctx context.Context, name string) (string, error) {
	id, err := s.People.FindLogin(ctx, name)
	if !errors.Is(err, store.ErrNotFound) {
		return id, err
	}
	var holder *string
	if err := s.DB.QueryRow(ctx, selectHolder, name).Scan(&holder); err != nil {
		return "", err
	}
	if holder == nil {
		return "", ErrStranger
	}
	return *holder, nil
}
