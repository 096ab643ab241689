package app_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/pquerna/otp/totp"

	"kontor/server/access"
	"kontor/server/apierr"
	"kontor/server/servertest"
)

const userPassword = "a long enough password 42" // of servertest.Server.User

// phone is the authenticator app of a user.
type phone struct {
	*testing.T
	server *servertest.Server
	factor string // id
	secret string
}

// code returns the next code.
func (p *phone) code() string {
	p.Helper()
	p.server.Clock.Advance(30 * time.Second)
	code, err := totp.GenerateCode(p.secret, p.server.Clock.Now())
	if err != nil {
		p.Fatal(err)
	}
	return code
}

// passwordOf returns the password of a user of servertest.
func passwordOf(s *servertest.Server, user *servertest.Client) string {
	if user.UserID == s.Admin().UserID {
		return servertest.AdminPassword
	}
	return userPassword
}

// enrol gives a user an authenticator app.
func enrol(t *testing.T, s *servertest.Server, user *servertest.Client) *phone {
	t.Helper()
	var made struct {
		ID   string
		TOTP struct{ Secret string }
	}
	path := "/v1/users/" + user.UserID + "/factors"
	user.Do("POST", path, map[string]any{"type": "totp", "name": "Phone", "password": passwordOf(s, user)}).Expect(t, http.StatusCreated).Into(t, &made)
	p := &phone{t, s, made.ID, made.TOTP.Secret}
	user.Do("POST", path+"/"+made.ID+"/confirm", map[string]any{"code": p.code()}).Expect(t, http.StatusOK)
	return p
}

// signIn signs a user in with password and code.
func (p *phone) signIn(user, password string) *servertest.Client {
	p.Helper()
	first := p.server.Anonymous().Do("POST", "/authenticate", map[string]any{"user_id": user, "password": password}).Expect(p, http.StatusAccepted)
	answer := map[string]any{"token": first.JSON(p.T)["token"], "code": p.code()}
	tokens := p.server.Anonymous().Do("POST", "/authenticate/factor", answer).Expect(p, http.StatusOK).JSON(p.T)
	c := p.server.Anonymous()
	c.Token, c.UserID = tokens["access_token"].(string), tokens["user_id"].(string)
	return c
}

// requiredBy returns the member factor_required_by of the caller.
func requiredBy(t *testing.T, c *servertest.Client) string {
	t.Helper()
	by, given := c.Do("GET", "/v1/users/me", nil).Expect(t, http.StatusOK).JSON(t)["factor_required_by"]
	if !given {
		t.Error("/v1/users/me has no factor_required_by")
	}
	text, _ := by.(string)
	return text
}

// Administrators need a second factor two weeks after the first of them has one, and can then still enrol one.
func TestSecondFactor_IsRequiredOfAdministrators(t *testing.T) {
	s := servertest.Start(t)
	root, advisor, customer := s.Admin(), s.User(access.Advisor), s.User(access.Customer)
	admin := s.User(access.Administrator)
	signIn := func(c *servertest.Client) *servertest.Client { return s.SignIn(c.UserID, userPassword) }
	s.Clock.Advance(30 * 24 * time.Hour)
	if by := requiredBy(t, s.SignIn(root.UserID, servertest.AdminPassword)); by != "" {
		t.Errorf("required by %s, although no administrator has a factor", by)
	}
	root = s.SignIn(root.UserID, servertest.AdminPassword)
	telephone := enrol(t, s, root)
	if by := requiredBy(t, root); by != "" {
		t.Errorf("a user with a factor needs one by %s", by)
	}

	admin = signIn(admin)
	want := s.Clock.Now().Add(14 * 24 * time.Hour).UTC()
	if by, err := time.Parse(time.RFC3339, requiredBy(t, admin)); err != nil || by.Sub(want).Abs() > time.Second {
		t.Errorf("required by %s, %v, want %s", by, err, want)
	}
	for _, other := range []*servertest.Client{advisor, customer} {
		if by := requiredBy(t, signIn(other)); by != "" {
			t.Errorf("a user of another role needs a factor by %s", by)
		}
	}
	s.Clock.Advance(14 * 24 * time.Hour)
	admin = signIn(admin)
	for _, e := range s.Table() {
		if !e.Access.TakesBearer() || e.Name == "auth.logout" || e.Name == "users.update" || strings.HasPrefix(e.Name, "notifications.stream") {
			continue
		}
		own := strings.Replace(e.Path, "/v1/users/{id}", "/v1/users/"+admin.UserID, 1)
		a := admin.Do(e.Method, withUnknownIDs(own), nil)
		if e.AuthZEN { // an error is a message
			a.Expect(t, 403)
			continue
		}
		if refused := codeOf(a.Body) == apierr.FactorRequired.Code; refused == e.WithoutFactor {
			t.Errorf("%s: got %d %s", e.Key(), a.Status, a.Body)
		}
	}
	own := "/v1/users/" + admin.UserID
	admin.Do("PATCH", own, map[string]any{"language": "it"}).Expect(t, 200)
	for path, body := range map[string]map[string]any{
		own: {"display_name": "Root"}, "/v1/users/" + customer.UserID: {"language": "it"},
	} {
		admin.Do("PATCH", path, body).ExpectError(t, 403, apierr.FactorRequired.Code)
	}
	other := enrol(t, s, admin)
	admin.Do("GET", "/v1/users", nil).Expect(t, 200)
	other.signIn(admin.UserID, userPassword).Do("GET", "/v1/users", nil).Expect(t, 200)

	// The last factor of the role may be removed: the rule is no longer in force.
	for c, p := range map[*servertest.Client]*phone{other.signIn(admin.UserID, userPassword): other, telephone.signIn(root.UserID, servertest.AdminPassword): telephone} {
		c.Do("DELETE", "/v1/users/"+c.UserID+"/factors/"+p.factor, map[string]any{"password": passwordOf(s, c)}).Expect(t, 200)
	}
	s.SignIn(root.UserID, servertest.AdminPassword).Do("GET", "/v1/users", nil).Expect(t, 200)
	signIn(admin).Do("GET", "/v1/users", nil).Expect(t, 200)
}

// A code that has completed a sign-in is refused for a step-up, and one of a step-up for a sign-in.
func TestSecondFactor_CountsOnce(t *testing.T) {
	s := servertest.Start(t)
	user := s.User(access.Customer)
	p := enrol(t, s, user)
	first := func() string {
		return s.Anonymous().Do("POST", "/authenticate", map[string]any{"user_id": user.UserID, "password": userPassword}).
			Expect(t, http.StatusAccepted).JSON(t)["token"].(string)
	}
	code := p.code()
	tokens := s.Anonymous().Do("POST", "/authenticate/factor", map[string]any{"token": first(), "code": code}).Expect(t, 200).JSON(t)
	c := s.Anonymous()
	c.Token, c.UserID = tokens["access_token"].(string), user.UserID
	again := "/v1/users/" + user.UserID + "/reauthenticate"
	c.Do("POST", again, map[string]any{"code": code}).ExpectError(t, 400, apierr.InvalidInput.Code)
	s.Anonymous().Do("POST", "/authenticate/factor", map[string]any{"token": first(), "code": code}).ExpectError(t, 401, apierr.InvalidFactor.Code)
	code = p.code()
	c.Do("POST", again, map[string]any{"code": code}).Expect(t, 200)
	s.Anonymous().Do("POST", "/authenticate/factor", map[string]any{"token": first(), "code": code}).ExpectError(t, 401, apierr.InvalidFactor.Code)
}

// Failures are in the audit trail, with the user and without the code.
func TestSecondFactor_FailuresAreAudited(t *testing.T) {
	s := servertest.Start(t)
	user := s.User(access.Customer)
	p := enrol(t, s, user)
	p.signIn(user.UserID, userPassword)
	token := s.Anonymous().Do("POST", "/authenticate", map[string]any{"user_id": user.UserID, "password": userPassword}).
		Expect(t, http.StatusAccepted).JSON(t)["token"]
	for i := range 6 {
		s.Anonymous().Do("POST", "/authenticate/factor", map[string]any{"token": token, "code": fmt.Sprintf("98765%d", i)}).Expect(t, 401)
	}
	token = s.Anonymous().Do("POST", "/authenticate", map[string]any{"user_id": user.UserID, "password": userPassword}).
		Expect(t, http.StatusAccepted).JSON(t)["token"]
	s.Anonymous().Do("POST", "/authenticate/factor", map[string]any{"token": token, "code": "987650"}).Expect(t, 429)
	if err := s.Audit.WriteEvents(t.Context()); err != nil {
		t.Fatal(err)
	}
	for action, kind := range map[string]string{"auth.factor_failed": "sign_in", "auth.challenge_refused": "sign_in", "auth.cooling_off": "throttle"} {
		page := s.Admin().Do("GET", "/v1/audit?search.action="+action, nil).Expect(t, 200)
		if !strings.Contains(page.Body, `"kind":"`+kind+`"`) || strings.Contains(page.Body, "98765") {
			t.Errorf("%s: %s", action, page.Body)
		}
		if action == "auth.factor_failed" && !strings.Contains(page.Body, `"rec_id":"`+user.UserID+`"`) {
			t.Errorf("%s: %s", action, page.Body)
		}
	}
}
