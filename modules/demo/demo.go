// Package demo fills an empty Kontor with an invented bank: customers in four languages with their verification,
// personas and families, payers, tasks, chats, notifications, one user for each role, and sample bills.
//
// Everything comes in through the API, as if people had typed it, over the months before today: the clock of the store
// is set back and moved on while the bank grows. No person, firm or account in it exists.
package demo

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"time"

	"kontor/modules"
	"kontor/modules/users"
	"kontor/server/access"
)

// Clock is the system's clock, which the demo sets back while it fills the bank.
type Clock struct{ behind atomic.Int64 }

// Now is the time of the system, or the one the demo has reached.
func (c *Clock) Now() time.Time { return time.Now().Add(-time.Duration(c.behind.Load())) }

// days is how long the bank has existed.
const days = 120

// bank is the demo while it is made.
type bank struct {
	*modules.Modules
	ctx    context.Context
	clock  *Clock
	random *rand.Rand
	api    *caller

	staff     []*person // advisors
	customer  *person
	customers []customer
	personas  []string // ids
	threads   []thread
}

// person is a user of the bank.
type person struct {
	id, email, name string
	language        string
	token           string
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

// Load fills the bank, whose database must be fresh and work by the clock. key is an API key of it, password what all
// users of the demo sign in with.
func Load(ctx context.Context, m *modules.Modules, clock *Clock, key, password string) error {
	settings, log := m.Settings, m.Log
	m.Settings.RateLimits.Enabled, m.Log = false, slog.New(slog.DiscardHandler)
	api, err := newCaller(m)
	m.Settings, m.Log = settings, log
	if err != nil {
		return err
	}
	defer api.close()
	b := &bank{Modules: m, ctx: ctx, clock: clock, api: api, random: rand.New(rand.NewPCG(1848, 1291))} //nolint:gosec // the same demo each time, no secret
	defer clock.behind.Store(0)
	b.goTo(0)
	if err := b.openDoors(key, password); err != nil {
		return fmt.Errorf("demo users: %w", err)
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
	clock.behind.Store(0)
	return m.Customers.RunExpiry(ctx)
}

// goTo sets the clock to the morning of a day, counted from the first.
func (b *bank) goTo(day int) {
	b.clock.behind.Store(int64(time.Duration(days-day)*24*time.Hour - time.Duration(b.random.IntN(300))*time.Minute))
}

// live is what happens on one day.
func (b *bank) live(day int) error {
	for _, step := range []func(day int) error{b.signIn, b.meetCustomers, b.verify, b.meetPersonas, b.billPayers, b.work, b.talk} {
		if err := step(day); err != nil {
			return err
		}
	}
	return nil
}

// openDoors makes the users.
func (b *bank) openDoors(key, password string) error {
	for _, s := range []struct {
		email, name, language, role string
	}{
		{"advisor@kontor.localhost", "Lena Brunner", "de", access.Advisor},
		{"marc.favre@kontor.localhost", "Marc Favre", "fr", access.Advisor},
		{"giulia.bernasconi@kontor.localhost", "Giulia Bernasconi", "it", access.Advisor},
		{"tom.wright@kontor.localhost", "Tom Wright", "en", access.Advisor},
		{"customer@kontor.localhost", "Nina Keller", "de", access.Customer},
	} {
		made, err := b.Users.Create(b.ctx, users.NewUser{Value: s.email, Password: password, Roles: []string{s.role}, Language: s.language})
		if err != nil {
			return err
		}
		p := &person{id: made.ID, email: s.email, name: s.name, language: s.language}
		if s.role == access.Advisor {
			b.staff = append(b.staff, p)
		} else {
			b.customer = p
		}
	}
	// By a user name, which needs no code: with an e-mail address that is not validated nobody can sign in.
	return b.api.post(&person{}, "/v1/users/initiate-registration", object{"credential_type": "username",
		"credential_value": registrant, "password": password, "terms_accepted": true, "privacy_policy_accepted": true},
		nil, "X-API-Key", key)
}

// PrintSignIns tells how to come in, as one user for each role. key is the API key where it is not known otherwise.
func PrintSignIns(w io.Writer, url string, m *Mark, key string) error {
	var text strings.Builder
	fmt.Fprintf(&text, "\nThe demo bank is open at %s. Everybody's password is %s\n\n", url, m.Password)
	for _, s := range [...]struct{ role, login string }{
		{"Administrator", m.Admin},
		{"Advisor", "advisor@kontor.localhost"},
		{"Customer", "customer@kontor.localhost"},
		{"Registrant", registrant},
	} {
		fmt.Fprintf(&text, "    %-14s %s\n", s.role, s.login)
	}
	if key != "" {
		fmt.Fprintf(&text, "\nThe API key, shown this once, is %s\n", key)
	}
	_, err := fmt.Fprintln(w, text.String())
	return err
}
