package client_test

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pquerna/otp/totp"

	"kontor/server/client"
	"kontor/server/client/clienttest"
	"kontor/server/servertest"
	"kontor/store/testenv"
)

// signedIn returns a client of the administrator over a recorder.
func signedIn(t *testing.T, s *servertest.Server, options ...client.Option) (*client.Client, *recorder) {
	t.Helper()
	seen := &recorder{}
	kontor := must(client.New("http://"+s.Address, append(options, client.WithTransport(seen), client.WithTimeout(testenv.Limit()))...))(t)
	if err := kontor.SignIn(t.Context(), servertest.AdminEmail, servertest.AdminPassword); err != nil {
		t.Fatal(err)
	}
	return kontor, seen
}

// A second use of a refresh token would end the session.
func TestSession_RefreshesOnceForManyCalls(t *testing.T) {
	const rounds, calls = 5, 40
	s := servertest.Start(t)
	var reported []client.TokenSet
	kontor, seen := signedIn(t, s, client.OnTokens(func(tokens client.TokenSet) { reported = append(reported, tokens) }))
	for range rounds {
		s.Clock.Advance(61 * time.Minute) // The access token has expired; the clock of the client does not show it.
		var group sync.WaitGroup
		for range calls {
			group.Go(func() {
				if _, err := kontor.Users.Me(t.Context()); err != nil {
					t.Error(err)
				}
			})
		}
		group.Wait()
	}
	if n := seen.count("/v1/token/refresh"); n != rounds {
		t.Errorf("%d refreshes, want %d", n, rounds)
	}
	if len(reported) != rounds+1 || reported[rounds] != kontor.Tokens() || reported[0].RefreshToken == reported[1].RefreshToken || kontor.Tokens().DeviceToken == "" {
		t.Errorf("got %d reports of tokens", len(reported))
	}
	again := must(client.New("http://"+s.Address, client.WithTokens(kontor.Tokens())))(t)
	if me := must(again.Users.Me(t.Context()))(t); me.ID != kontor.Tokens().UserID {
		t.Errorf("the continued session belongs to %s", me.ID)
	}
}

// An answer that is lost does not end the session.
func TestSession_RepeatsALostRefresh(t *testing.T) {
	const wanted = 2
	s := servertest.Start(t)
	kontor, seen := signedIn(t, s)
	s.Clock.Advance(61 * time.Minute)
	lost := 0
	seen.before = func(r *http.Request) (*http.Response, error) {
		if r.URL.Path != "/v1/token/refresh" || lost == wanted {
			return nil, nil
		}
		lost++
		answer, err := http.DefaultTransport.RoundTrip(r)
		if err != nil {
			return nil, err
		}
		answer.Body.Close()
		return nil, errors.New("the connection was lost")
	}
	must(kontor.Users.Me(t.Context()))(t)
	if lost != wanted {
		t.Errorf("%d answers were lost", lost)
	}
}

// The call that starts the refresh may be cancelled: the new tokens arrive all the same.
func TestSession_KeepsTokensOfACancelledCall(t *testing.T) {
	s := servertest.Start(t)
	kontor, seen := signedIn(t, s)
	before := kontor.Tokens()
	s.Clock.Advance(61 * time.Minute)
	ctx, cancel := context.WithCancel(t.Context())
	seen.before = func(r *http.Request) (*http.Response, error) {
		if r.URL.Path == "/v1/token/refresh" {
			cancel()
		}
		return nil, nil
	}
	if _, err := kontor.Users.Me(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	must(kontor.Users.Me(t.Context()))(t)
	if kontor.Tokens().RefreshToken == before.RefreshToken || seen.count("/v1/token/refresh") != 1 {
		t.Errorf("%d refreshes", seen.count("/v1/token/refresh"))
	}
}

func TestSession_EndsWhenTheServiceHasEndedIt(t *testing.T) {
	s := servertest.Start(t)
	kontor, seen := signedIn(t, s)
	s.Clock.Advance(40 * 24 * time.Hour)
	_, err := kontor.Users.Me(t.Context())
	if !errors.Is(err, client.ErrNotSignedIn) || !errors.Is(err, client.ErrAuthInvalidRefreshToken) {
		t.Errorf("got %v", err)
	}
	if _, err := kontor.Users.Me(t.Context()); !errors.Is(err, client.ErrNotSignedIn) || seen.count("/v1/token/refresh") != 1 {
		t.Errorf("got %v", err)
	}
	if kontor.Tokens().AccessToken != "" || kontor.Tokens().DeviceToken == "" {
		t.Error("the client should have forgotten the session and kept the token of the device")
	}
	if err := kontor.SignIn(t.Context(), servertest.AdminEmail, servertest.AdminPassword); err != nil {
		t.Fatal(err)
	}
	if err := kontor.SignOut(t.Context()); err != nil || kontor.Tokens().RefreshToken != "" {
		t.Errorf("got %v", err)
	}
	if err := kontor.SignOut(t.Context()); err != nil {
		t.Errorf("a second sign-out: got %v", err)
	}
}

func TestSignIn_RejectsAWrongPassword(t *testing.T) {
	kontor := clienttest.New(t, servertest.Start(t))
	if err := kontor.SignIn(t.Context(), servertest.AdminEmail, "wrong"); !errors.Is(err, client.ErrAuthInvalidCredentials) {
		t.Errorf("got %v", err)
	}
	if kontor.Tokens() != (client.TokenSet{}) {
		t.Error("the client has tokens")
	}
}

func TestSignIn_TakesASecondStep(t *testing.T) {
	ctx, s := t.Context(), servertest.Start(t)
	kontor := clienttest.Admin(t, s, client.WithDevice("office"))
	me := kontor.Tokens().UserID
	factor := must(kontor.Factors.Enrol(ctx, me, client.FactorEnrolInput{Type: client.FactorEnrolTypeTOTP, Password: servertest.AdminPassword}))(t)
	code := func() string { return must(totp.GenerateCode(factor.TOTP.Secret, s.Clock.Now()))(t) }
	confirmed := must(kontor.Factors.Confirm(ctx, me, factor.ID, client.FactorConfirmInput{Code: code()}))(t)
	for name, complete := range map[string]func(*client.SecondFactorRequired) error{
		"code":          func(e *client.SecondFactorRequired) error { return e.Code(ctx, code()) },
		"recovery code": func(e *client.SecondFactorRequired) error { return e.RecoveryCode(ctx, confirmed.RecoveryCodes[0]) },
	} {
		s.Clock.Advance(time.Minute) // A code is accepted once.
		next := clienttest.New(t, s, client.WithDevice("office"))
		var second *client.SecondFactorRequired
		if err := next.SignIn(ctx, servertest.AdminEmail, servertest.AdminPassword); !errors.As(err, &second) || !slices.Contains(second.Methods, "totp") {
			t.Fatalf("%s: got %v", name, err)
		}
		if _, err := next.Users.Me(ctx); !errors.Is(err, client.ErrNotSignedIn) {
			t.Errorf("%s: after the first step: got %v", name, err)
		}
		if err := second.Code(ctx, "000000"); !errors.Is(err, client.ErrAuthInvalidFactor) {
			t.Errorf("%s: a wrong code: got %v", name, err)
		}
		if err := complete(second); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		must(next.Users.Me(ctx))(t)
	}
}

// offline returns a client whose transport answers without a network, for a bubble of synctest.
func offline(t *testing.T, answer func(*http.Request) (*http.Response, error), options ...client.Option) *client.Client {
	t.Helper()
	return must(client.New("https://bank.example", append(options, client.WithTransport(&recorder{before: answer}))...))(t)
}

const pair = `{"access_token":"a","token_type":"Bearer","expires_in":3600,"refresh_token":"r","user_id":"u"}`

func TestSession_RefreshesBeforeTheTokenExpires(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		refreshed, failing := 0, false
		kontor := offline(t, func(r *http.Request) (*http.Response, error) {
			switch {
			case r.URL.Path == "/v1/token/refresh" && failing:
				return nil, errors.New("no network")
			case r.URL.Path == "/v1/token/refresh":
				refreshed++
				fallthrough
			case r.URL.Path == "/authenticate":
				return respond(r, 200, pair), nil
			}
			return respond(r, 200, `{}`), nil
		})
		if err := kontor.SignIn(t.Context(), "anna", "password"); err != nil {
			t.Fatal(err)
		}
		for _, step := range []struct {
			after   time.Duration
			failing bool
			want    int
			wrong   bool
		}{
			{59 * time.Minute, false, 0, false}, {31 * time.Second, false, 1, false}, {0, false, 1, false},
			{3580 * time.Second, true, 1, false}, // The token is still valid for 20 seconds.
			{21 * time.Second, true, 1, true}, {0, false, 2, false},
		} {
			time.Sleep(step.after) // of the bubble
			failing = step.failing
			if _, err := kontor.Users.Me(t.Context()); (err != nil) != step.wrong || refreshed != step.want {
				t.Errorf("after %v: %d refreshes, %v", step.after, refreshed, err)
			}
		}
	})
}

func TestCalls_AreRepeatedWhenThatIsSafe(t *testing.T) {
	unavailable := `{"status":503,"message":"Busy.","code":"common.unavailable","class":"temporary","retryable":true}`
	unknown := strings.Replace(unavailable, "common.unavailable", "common.outcome_unknown", 1)
	limited := strings.Replace(unavailable, "common.unavailable", "rate_limits_m.exceeded", 1)
	cooling := strings.Replace(unavailable, "common.unavailable", "auth_m.cooling_off", 1)
	health := `{"overall_status":"unhealthy","message":"The service is shutting down.","timestamp":"2026-01-31T08:15:30.123Z"}`
	get := func(c *client.Client, ctx context.Context) error { _, err := c.Customers.Get(ctx, "1"); return err }
	create := func(c *client.Client, ctx context.Context) error {
		_, err := c.Customers.Create(ctx, client.CustomerCreateInput{})
		return err
	}
	update := func(c *client.Client, ctx context.Context) error {
		_, err := c.Customers.Update(ctx, "1", client.CustomerUpdateInput{})
		return err
	}
	signIn := func(c *client.Client, ctx context.Context) error { return c.SignIn(ctx, "anna", "wrong") }
	for name, c := range map[string]struct {
		call   func(*client.Client, context.Context) error
		status int // 0: the connection fails
		body   string
		retry  string
		want   int           // requests
		least  time.Duration // between the first and the last
	}{
		"a busy service":                     {update, 503, unavailable, "3", 3, 6 * time.Second},
		"a service that shuts down":          {update, 503, health, "1", 3, 2 * time.Second},
		"a rate limit":                       {update, 429, limited, "10", 3, 20 * time.Second},
		"a long rate limit":                  {get, 429, limited, "31", 1, 0},
		"a Retry-After from a hostile proxy": {get, 503, unavailable, "99999999", 1, 0},
		"a lockout":                          {signIn, 429, cooling, "1", 1, 0},
		"an unknown outcome of a creation":   {create, 503, unknown, "", 3, 500 * time.Millisecond},
		"an unknown outcome of a change":     {update, 503, unknown, "", 1, 0},
		"a broken connection of a read":      {get, 0, "", "", 3, 500 * time.Millisecond},
		"a broken connection of a creation":  {create, 0, "", "", 3, 500 * time.Millisecond},
		"a broken connection of a change":    {update, 0, "", "", 1, 0},
		"a proxy without a service, read":    {get, 502, "<html>", "", 3, 500 * time.Millisecond},
		"a proxy without a service, change":  {update, 502, "<html>", "", 1, 0},
		"an error of the caller":             {get, 404, strings.Replace(unavailable, "common.unavailable", "customers.customer_not_found", 1), "", 1, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				keys, began, last := map[string]bool{}, time.Now(), time.Time{}
				requests := 0
				kontor := offline(t, func(r *http.Request) (*http.Response, error) {
					requests++
					last = time.Now()
					keys[r.Header.Get("Idempotency-Key")] = true
					if c.status == 0 {
						return nil, errors.New("connection reset")
					}
					return respond(r, c.status, c.body, "Retry-After", c.retry), nil
				}, client.WithTokens(client.TokenSet{AccessToken: "a"}))
				if err := c.call(kontor, t.Context()); err == nil {
					t.Error("no error")
				}
				if requests != c.want || last.Sub(began) < c.least || len(keys) != 1 {
					t.Errorf("%d requests with %d keys in %v, want %d in %v or more", requests, len(keys), last.Sub(began), c.want, c.least)
				}
			})
		})
	}
}
