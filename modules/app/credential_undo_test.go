package app_test

import (
	"context"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"kontor/modules/identity/directory"
	"kontor/modules/kit/signin"
	"kontor/server/access"
	"kontor/server/endpoint"
	"kontor/server/servertest"
	"kontor/store"
)

var restoreLink = regexp.MustCompile(`/undo\?restore#([A-Za-z0-9_-]{22})`)

// owner is a user with an e-mail address and an older user name.
type owner struct {
	*servertest.Client
	server      *servertest.Server
	email, name string // ids of the credentials
	address     string
}

func newOwner(t *testing.T, s *servertest.Server) *owner {
	t.Helper()
	user := s.User(access.Customer)
	o := &owner{Client: user, server: s}
	var page struct {
		Data []struct{ ID, Value string }
	}
	user.Do("GET", "/v1/users/"+user.UserID+"/credentials", nil).Into(t, &page)
	o.email, o.address = page.Data[0].ID, page.Data[0].Value
	o.name = user.Create("/v1/users/"+user.UserID+"/credentials", map[string]any{"credential_type": "username",
		"credential_value": "n" + user.UserID[24:], "password": servertest.Password})
	s.Clock.Advance(signin.Trial)
	o.Client = s.SignIn(user.UserID, servertest.Password)
	return o
}

func (o *owner) remove(id string) servertest.Response {
	return o.Do("DELETE", "/v1/users/credentials/"+id, nil)
}

// links returns the tokens of the links in the messages to the address.
func (o *owner) links() (tokens []string) {
	for _, text := range o.server.Messages(o.UserID, o.address) {
		if found := restoreLink.FindStringSubmatch(text); found != nil {
			tokens = append(tokens, found[1])
		}
	}
	return tokens
}

func (o *owner) undo(token string) servertest.Response {
	return o.server.Anonymous().Do("POST", "/authenticate/undo", map[string]any{"token": token})
}

// Deleting a credential takes no body. A link in the message to all addresses, also the deleted one, restores it and ends all sessions.
func TestDeletedCredential_IsRestoredByTheLink(t *testing.T) {
	s := servertest.Start(t)
	o := newOwner(t, s)
	s.Clock.Advance(endpoint.FreshFor)
	o.remove(store.NewID()).ExpectError(t, 404, "users.user_not_found")
	o.remove(o.email).ExpectError(t, 401, "auth_m.insufficient_user_authentication")
	o.Client = s.SignIn(o.address, servertest.Password)
	o.remove(o.email).Expect(t, http.StatusOK)
	o.remove(o.name).ExpectError(t, 409, "users.last_credential")
	s.Anonymous().Do("POST", "/authenticate", map[string]any{"user_id": o.address, "password": servertest.Password}).Expect(t, http.StatusUnauthorized)

	links := o.links()
	if len(links) != 1 {
		t.Fatalf("%d links: %v", len(links), s.Messages(o.UserID, o.address))
	}
	thief := o.Client
	o.undo(links[0]).Expect(t, http.StatusOK)
	thief.Do("GET", "/v1/users/me", nil).Expect(t, http.StatusUnauthorized)
	o.undo(links[0]).ExpectError(t, 404, "auth_m.undo_invalid")
	o.Client = s.SignIn(o.address, servertest.Password)
	list := o.Do("GET", "/v1/users/"+o.UserID+"/credentials?search.id="+o.email, nil).Expect(t, http.StatusOK).Body
	if !strings.Contains(list, `"value":"`+o.address+`","validated":true`) || strings.Contains(list, `"trusted_from":null`) {
		t.Errorf("the restored credential: %s", list)
	}
	// It is on trial, as a new one: who deletes it again does so for good.
	o.remove(o.email).Expect(t, http.StatusOK)
	if now := o.links(); len(now) != 1 {
		t.Errorf("%d links after the second deletion", len(now))
	}
}

func TestDeletedCredential_IsNotRestored(t *testing.T) {
	for name, change := range map[string]func(s *servertest.Server, o *owner){
		"after a day": func(s *servertest.Server, _ *owner) { s.Clock.Advance(24 * time.Hour) },
		"that another user has": func(s *servertest.Server, o *owner) {
			ctx := access.With(context.Background(), &access.Caller{UserID: store.NilID})
			if _, err := s.Users.Create(ctx, directory.NewUser{Value: o.address, Password: servertest.Password, Roles: []string{access.Customer}}); err != nil {
				t.Fatal(err)
			}
		},
		"of an erased user": func(s *servertest.Server, o *owner) {
			s.Admin().Do("POST", "/v1/users/"+o.UserID+"/erasure", `{"reason": "request"}`)
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := servertest.Start(t)
			o := newOwner(t, s)
			o.remove(o.email).Expect(t, http.StatusOK)
			token := o.links()[0]
			change(s, o)
			o.undo(token).ExpectError(t, 404, "auth_m.undo_invalid")
		})
	}
}

// The bank's deletion is the bank's decision: its message has no link.
func TestDeletedCredential_ByTheBankHasNoLink(t *testing.T) {
	s := servertest.Start(t)
	o := newOwner(t, s)
	s.SignIn(servertest.AdminEmail, servertest.AdminPassword).Do("DELETE", "/v1/users/credentials/"+o.name, nil).Expect(t, http.StatusOK)
	if links := o.links(); len(links) != 0 {
		t.Errorf("the message has a link: %v", s.Messages(o.UserID, o.address))
	}
}
