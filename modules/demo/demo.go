// Package demo fills an empty Kontor with an invented bank: customers in four languages with their verification,
// personas and families, payers, tasks, chats, notifications, one user for each role, and sample bills.
//
// Everything but the bills, which are files beside the database, comes in through the API, as if people had typed
// it, over the year before today: the clock of the store is set back and moved on while the bank grows. No person, firm or account in it exists.
package demo

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"kontor/modules/app"
	"kontor/modules/directory"
	"kontor/server/access"
)

// Clock is the system's clock, which the demo sets back while it fills the bank.
type Clock struct{ behind atomic.Int64 }

// Now is the time of the system, or the one the demo has reached.
func (c *Clock) Now() time.Time { return time.Now().Add(-time.Duration(c.behind.Load())) }

// days is how long the bank has existed.
const days = 360

// bank is the demo while it is made.
type bank struct {
	*app.Modules
	ctx    context.Context
	clock  *Clock
	random *rand.Rand
	api    *caller

	admin     *person
	staff     []*person // advisors
	customer  *person
	customers []customer
	personas  []string // ids
	threads   []thread
}

// person is a user of the bank.
type person struct {
	id, email, name string
	token           string
	entered         time.Time // when he last signed in
}

// customer is a customer of the bank.
type customer struct {
	id      string
	advisor *person
	who     identity
	day     int // on which he came
}

const (
	defaultAdmin = "admin@kontor.localhost"
	registrant   = "registrant"
)

// Load fills the bank, whose database must be fresh and work by the clock. key is an API key of it; the mark names its
// administrator and the password of all its users.
func Load(ctx context.Context, m *app.Modules, clock *Clock, key string, mark *Mark) error {
	settings, log := m.Settings, m.Log
	m.Settings.RateLimits.Enabled, m.Log = false, slog.New(slog.DiscardHandler)
	api, err := newCaller(m)
	m.Settings, m.Log = settings, log
	if err != nil {
		return err
	}
	defer api.close()
	b := &bank{Modules: m, ctx: ctx, clock: clock, api: api, random: rand.New(rand.NewPCG(1848, 1291))} //nolint:gosec // the same demo each time, no secret
	api.enter = b.enter
	defer clock.behind.Store(0)
	b.goTo(0)
	if err := b.openDoors(key, mark); err != nil {
		return fmt.Errorf("demo users: %w", err)
	}
	if err := b.keepHouse(); err != nil {
		return fmt.Errorf("demo roles and limits: %w", err)
	}
	for day := range days {
		if err := ctx.Err(); err != nil {
			return err
		}
		b.goTo(day)
		if err := b.live(day); err != nil {
			return fmt.Errorf("demo day %d: %w", day, err)
		}
	}
	if err := b.lately(); err != nil {
		return fmt.Errorf("the last hours of the demo: %w", err)
	}
	clock.behind.Store(0)
	return writeBills(m.Settings.Data.Dir)
}

// goTo sets the clock to the morning of a day, counted from the first.
func (b *bank) goTo(day int) {
	b.clock.behind.Store(int64(time.Duration(days-day)*24*time.Hour - time.Duration(b.random.IntN(300))*time.Minute))
}

// ago sets the clock to some time before now.
func (b *bank) ago(d time.Duration) { b.clock.behind.Store(int64(d)) }

// pass lets time go by.
func (b *bank) pass(d time.Duration) { b.clock.behind.Add(-int64(d)) }

// live is what happens on one day.
func (b *bank) live(day int) error {
	for _, step := range []func(day int) error{b.meetCustomers, b.verify, b.meetPersonas, b.billPayers, b.work, b.talk} {
		if err := step(day); err != nil {
			return err
		}
	}
	if day%10 == 0 {
		return b.Customers.RunExpiry(b.ctx)
	}
	return nil
}

var roleNames = map[string]string{access.Advisor: "Advisor", access.Customer: "Customer"}

// openDoors makes the users. The administrator is there already.
func (b *bank) openDoors(key string, mark *Mark) error {
	b.admin = &person{email: mark.Admin, name: "Claire Aubry"}
	var session struct {
		Token string `json:"access_token"`
	}
	if err := b.api.post(&person{}, "/authenticate", object{"user_id": mark.Admin, "password": mark.Password}, &session); err != nil {
		return err
	}
	var me idOf
	if err := b.api.get(&person{token: session.Token}, "/v1/users/me", &me); err != nil {
		return err
	}
	b.admin.id = me.ID
	if err := b.api.do(&person{token: session.Token}, http.MethodPatch, "/v1/users/"+me.ID, object{"display_name": b.admin.name}, nil); err != nil {
		return err
	}
	for _, s := range []struct {
		email, name, language, role string
	}{
		{"advisor@kontor.localhost", "Lena Brunner", "de", access.Advisor},
		{"marc.favre@kontor.localhost", "Marc Favre", "fr", access.Advisor},
		{"giulia.bernasconi@kontor.localhost", "Giulia Bernasconi", "it", access.Advisor},
		{"tom.wright@kontor.localhost", "Tom Wright", "en", access.Advisor},
		{"customer@kontor.localhost", "Nina Keller", "de", access.Customer},
	} {
		made, err := b.Users.Create(b.ctx, directory.NewUser{Value: s.email, DisplayName: s.name, Password: mark.PasswordOf(roleNames[s.role]), Roles: []string{s.role}, Language: s.language})
		if err != nil {
			return err
		}
		p := &person{id: made.ID, email: s.email, name: s.name}
		if s.role == access.Advisor {
			b.staff = append(b.staff, p)
		} else {
			b.customer = p
		}
	}
	// By a user name, which needs no code: with an e-mail address that is not validated nobody can sign in.
	return b.api.post(&person{}, "/v1/users/initiate-registration", object{"credential_type": "username",
		"credential_value": registrant, "password": mark.PasswordOf("Registrant"), "terms_accepted": true, "privacy_policy_accepted": true},
		nil, "X-API-Key", key)
}

// PrintSignIns writes how to sign in, as one user for each role, and the API key where it is not known otherwise.
func PrintSignIns(w io.Writer, url string, m *Mark) error {
	var text strings.Builder
	fmt.Fprintf(&text, "\nThe demo bank is open at %s. Sign in with:\n\n", url)
	for _, s := range [...]struct{ role, login string }{
		{"Administrator", m.Admin},
		{"Advisor", "advisor@kontor.localhost"},
		{"Customer", "customer@kontor.localhost"},
		{"Registrant", registrant},
	} {
		fmt.Fprintf(&text, "    %-14s %-26s %s\n", s.role, s.login, m.PasswordOf(s.role))
	}
	fmt.Fprintf(&text, "\nAll advisors have the same password. QR-bills to try out are in %s\n", m.bills())
	if m.APIKey != "" {
		fmt.Fprintf(&text, "\nThe API key is %s\n", m.APIKey)
	}
	_, err := fmt.Fprintln(w, text.String())
	return err
}
