package auth

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"sync"
	"time"

	"kontor/modules/kit/factor"
	"kontor/server/apierr"
	"kontor/server/endpoint"
	"kontor/store"
)

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
	secret := make([]byte, localCodeSize)
	rand.Read(secret) // does not fail: it would end the program
	code = base64.RawURLEncoding.EncodeToString(secret)
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
