package auth

import (
	"context"
	"crypto/sha256"
	"net/http"
	"sync"
	"time"

	"kontor/modules/kit/factor"
	"kontor/modules/kit/records"
	"kontor/modules/kit/signin"
	"kontor/server/access"
	"kontor/server/apierr"
	"kontor/server/endpoint"
	"kontor/store"
)

// undoBytes is the length of the token of a link that removes a new method. It is short, because the link is also in SMS.
const undoBytes = 16

const (
	actionUndo    = "auth.method_undone"
	actionRestore = "auth.method_restored"
)

const (
	insertUndo = `INSERT INTO sign_in_undos (id, user_id, kind, method_id, created_at, expires_at, removed) VALUES ($1, $2, $3, $4, $5, $6, $7)`

	selectUndo = `SELECT user_id, kind, method_id, removed FROM sign_in_undos WHERE id = $1 AND expires_at > $2`

	deleteUndos = `DELETE FROM sign_in_undos WHERE method_id = $1`

	deleteUndosOf = `DELETE FROM sign_in_undos WHERE user_id = $1`
)

var _ signin.Rule = (*Service)(nil)

// onTrial returns the methods of a user that are on trial or not confirmed.
func (s *Service) onTrial(ctx context.Context, q store.Querier, userID string) ([]signin.Method, error) {
	var all []signin.Method
	for _, kind := range []signin.Kind{signin.Factor, signin.Identity, signin.Credential} {
		owner := s.Peers.Methods[kind]
		if owner == nil {
			continue
		}
		found, err := owner.OnTrial(ctx, q, userID)
		if err != nil {
			return nil, err
		}
		all = append(all, found...)
	}
	return all, nil
}

// CheckRemoval returns apierr.OlderMethodKept for a method that must stay while a newer one of its user is on trial. A method on
// trial may be removed at any time.
func (s *Service) CheckRemoval(ctx context.Context, q store.Querier, userID string, trustedFrom store.Time) error {
	now := q.Now()
	if now < trustedFrom {
		return nil
	}
	methods, err := s.onTrial(ctx, q, userID)
	if err != nil {
		return err
	}
	var newest store.Time
	for _, m := range methods {
		if !m.Harmless {
			newest = max(newest, m.TrustedFrom)
		}
	}
	if now >= newest {
		return nil
	}
	return until(apierr.OlderMethodKept, newest)
}

// until returns an error with the time from which the request is possible.
func until(kind apierr.Kind, at store.Time) error {
	return (&apierr.Error{Kind: kind, Args: apierr.Args{"Time": at.Std().Format(time.RFC3339)}}).Detail("until", at)
}

// DropOnTrial removes all methods of a user that are on trial or not confirmed. The caller ends the sessions.
func (s *Service) DropOnTrial(ctx context.Context, tx *store.Tx, userID string) error {
	methods, err := s.onTrial(ctx, tx, userID)
	if err != nil {
		return err
	}
	for _, m := range methods {
		if err := s.dropMethod(ctx, tx, m, false); err != nil {
			return err
		}
	}
	return nil
}

// dropMethod removes a method and its links.
func (s *Service) dropMethod(ctx context.Context, tx *store.Tx, m signin.Method, announce bool) error {
	if _, err := tx.Exec(ctx, deleteUndos, m.ID); err != nil {
		return err
	}
	if err := s.Peers.Methods[m.Kind].Drop(ctx, tx, m, announce); err != nil {
		return err
	}
	s.Changed(tx, m.UserID)
	return nil
}

// NewUndo returns the path of the link that removes a new method, and what stores its token. The token is in the fragment, which
// browsers do not send: it is in no log, and opening the link changes nothing.
func (s *Service) NewUndo(kind signin.Kind, userID, id string) (path string, keep func(ctx context.Context, tx *store.Tx) error) {
	return newUndo("/undo#", kind, userID, id, "")
}

// NewRestore is NewUndo for the link that restores a removed credential. The query lets the console ask the right question.
func (s *Service) NewRestore(userID, id, state string) (path string, keep func(ctx context.Context, tx *store.Tx) error) {
	return newUndo("/undo?restore#", signin.Credential, userID, id, state)
}

func newUndo(path string, kind signin.Kind, userID, id, removed string) (string, func(ctx context.Context, tx *store.Tx) error) {
	token := newSecret(undoBytes)
	return path + token, func(ctx context.Context, tx *store.Tx) error {
		return tx.Run(ctx, insertUndo, tokenHash(token), userID, string(kind), id, tx.Now(), tx.Now().Add(signin.Trial), removed)
	}
}

type undoInput struct {
	Token string `json:"token" maxLength:"128" doc:"From the fragment of the link."`
}

// Validate requires a token.
func (in *undoInput) Validate(v *apierr.Fields) {
	if in.Token == "" {
		v.Add("token", "invalid.required")
	}
	if len(in.Token) > maxToken {
		v.Add("token", "invalid.max_length", apierr.Args{"Max": maxToken})
	}
}

// undo removes the new method of a link, or restores the removed credential of a link, and ends all sessions of its user: those that
// were opened with the method, and the one that has changed it. It returns apierr.UndoInvalid for every token that is unknown, used or
// expired, for a method that does not exist any more, and for a credential that cannot be restored.
func (s *Service) undo(ctx context.Context, in undoInput) (endpoint.Message, error) {
	if !isSecret(in.Token, undoBytes) {
		return endpoint.Message{}, apierr.UndoInvalid
	}
	done := actionUndo
	err := s.db.InTx(ctx, func(tx *store.Tx) error {
		var wanted signin.Method
		var removed string
		err := tx.QueryRow(ctx, selectUndo, tokenHash(in.Token), tx.Now()).Scan(&wanted.UserID, &wanted.Kind, &wanted.ID, &removed)
		if err != nil {
			return records.OrMissing(err, apierr.UndoInvalid)
		}
		if removed != "" {
			done = actionRestore
			return s.restore(ctx, tx, wanted, removed)
		}
		methods, err := s.onTrial(ctx, tx, wanted.UserID)
		if err != nil {
			return err
		}
		for _, m := range methods {
			if m.Kind != wanted.Kind || m.ID != wanted.ID {
				continue
			}
			tx.Audit(store.AuditEntry{Actor: store.NilID, Action: actionUndo, RecType: access.Users.Name, RecID: m.UserID})
			if err := s.EndSessions(ctx, tx, m.UserID, ""); err != nil {
				return err
			}
			return s.dropMethod(ctx, tx, m, true)
		}
		return apierr.UndoInvalid
	})
	return endpoint.Confirm(ctx, s.options.Texts, done), err
}

// restore restores a removed credential. Its links end.
func (s *Service) restore(ctx context.Context, tx *store.Tx, m signin.Method, removed string) error {
	tx.Audit(store.AuditEntry{Actor: store.NilID, Action: actionRestore, RecType: access.Users.Name, RecID: m.UserID})
	if err := s.EndSessions(ctx, tx, m.UserID, ""); err != nil {
		return err
	}
	if err := tx.Run(ctx, deleteUndos, m.ID); err != nil {
		return err
	}
	s.Changed(tx, m.UserID)
	return s.Peers.Credentials.Restore(ctx, tx, removed)
}

const (
	localLinkFor  = time.Minute
	maxLocalLinks = 16 // open ones; a further one ends the oldest
	localCodeSize = 32 // bytes

	actionOpenByLink = "auth.session_opened_by_link"
)

// localLinks are the codes of "kontor open", in the memory of the process that made them. Each stands for the password of its user
// once, within a minute.
type localLinks struct {
	mu   sync.Mutex
	open []localLink // the oldest first
}

type localLink struct {
	hash    [sha256.Size]byte
	userID  string
	expires store.Time
}

func (l *localLinks) add(link localLink) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.open) >= maxLocalLinks {
		l.open = l.open[1:]
	}
	l.open = append(l.open, link)
}

// take ends the link of a code and returns its user, or an empty text for a code that is unknown, used or expired.
func (l *localLinks) take(code string, now store.Time) string {
	hash := sha256.Sum256([]byte(code))
	l.mu.Lock()
	defer l.mu.Unlock()
	for i, link := range l.open {
		if link.hash != hash { // hashes of random codes: their comparison reveals nothing
			continue
		}
		l.open = append(l.open[:i:i], l.open[i+1:]...)
		if now >= link.expires || link.expires > now.Add(localLinkFor) { // a link from the future is of a clock that was set back
			return ""
		}
		return link.userID
	}
	return ""
}

// NewLocalLink returns a code that signs in the user with a sign-in value once, within a minute, from this machine. It stands for the
// password alone. Only the operator may call it. It returns apierr.UserNotFound for an unknown or disabled user.
func (s *Service) NewLocalLink(ctx context.Context, value string) (code string, err error) {
	user, err := selectAccount(ctx, s.db, s.loginOf(value))
	if err != nil {
		return "", err
	}
	if user.id == "" || user.status != "active" {
		return "", apierr.UserNotFound
	}
	code = newSecret(localCodeSize)
	s.links.add(localLink{sha256.Sum256([]byte(code)), user.id, s.db.Now().Add(localLinkFor)})
	return code, nil
}

// signInByLink opens a session for the code of a link, or returns the next step for a user with a second factor.
func (s *Service) signInByLink(ctx context.Context, in linkInput) (endpoint.Result, error) {
	userID := s.links.take(in.Code, s.db.Now())
	if userID == "" {
		return endpoint.Result{}, apierr.ChallengeExpired
	}
	proved := Methods{factor.AMRPassword}
	step, c, err := s.stepAfter(ctx, userID, challengeData{AMR: proved, At: s.db.Now(), ByLink: true})
	if err != nil {
		return endpoint.Result{}, err
	}
	if step != nil {
		return endpoint.Result{Status: http.StatusAccepted, Body: step}, s.beginChallenge(ctx, c)
	}
	var tokens Tokens
	err = s.db.InTx(ctx, func(tx *store.Tx) error {
		if err := s.requireNoStep(ctx, tx, userID, proved); err != nil {
			return err
		}
		tokens, err = s.openAfter(ctx, tx, s.newAttempt(ctx, userID, ""), proof{amr: proved, at: tx.Now(), byLink: true})
		return err
	})
	return endpoint.Result{Body: tokens}, err
}

type linkInput struct {
	Code string `json:"code" maxLength:"64" doc:"The code in the link that kontor open prints, after #local=."`
}

// Validate requires the code.
func (in *linkInput) Validate(v *apierr.Fields) {
	switch {
	case in.Code == "":
		v.Add("code", "invalid.required")
	case len(in.Code) > 64:
		v.Add("code", "invalid.max_length", apierr.Args{"Max": 64})
	}
}
