// Package demo fills an empty database with demo data: customers in four languages with their verification, personas and
// families, payers, tasks, chats, notifications, hits of a screening list, one user for each role, and sample bills.
//
// It creates all records through the API, as their users would, over the year before today: it sets the clock of the store
// back and advances it. The sample bills are files beside the database. All people, companies and accounts are fictitious.
package demo

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"strings"
	"time"

	"kontor/modules/app"
	"kontor/modules/identity/directory"
	"kontor/server/access"
	"kontor/store/clock"
)

// days is the number of days before today for which there are demo data.
const days = 360

// builder creates the demo data.
type builder struct {
	*app.Modules
	clock  *clock.Shifted
	random *rand.Rand
	api    *client

	admin     *person
	staff     []*person // advisors
	customer  *person
	customers []customer
	personas  []string // ids
	threads   []thread
}

// person is a user who acts in the demo.
type person struct {
	id, name string
	token    string
	signedIn time.Time // time of the newest sign-in
}

// customer is a customer record of the demo.
type customer struct {
	id       string
	advisor  *person // who created the record
	identity identity
	day      int // on which the record was created
}

const (
	defaultAdmin = "admin@kontor.localhost"
	registrant   = "registrant"
)

// Load creates the demo data. The database must be empty, apart from the result of the first start, and use the clock, which
// Load sets back while it works. key is an API key; the manifest holds the administrator and the passwords of the users.
func Load(ctx context.Context, m *app.Modules, clock *clock.Shifted, key string, manifest *Manifest) error {
	settings, log := m.Settings, m.Log
	m.Settings.RateLimits.Enabled, m.Log = false, slog.New(slog.DiscardHandler)
	api, err := newClient(m)
	m.Settings, m.Log = settings, log
	if err != nil {
		return err
	}
	defer api.close()
	b := &builder{Modules: m, clock: clock, api: api, random: rand.New(rand.NewPCG(1848, 1291))} //nolint:gosec // the same demo each time, no secret
	api.ensureSession = b.ensureSession
	defer clock.SetOffset(0)
	b.setDay(0)
	if err := b.createUsers(ctx, key, manifest); err != nil {
		return fmt.Errorf("demo users: %w", err)
	}
	if err := b.configure(ctx); err != nil {
		return fmt.Errorf("demo roles and limits: %w", err)
	}
	for day := range days {
		if err := ctx.Err(); err != nil {
			return err
		}
		b.setDay(day)
		if err := b.createDay(ctx, day); err != nil {
			return fmt.Errorf("demo day %d: %w", day, err)
		}
	}
	if err := b.createRecentEvents(ctx); err != nil {
		return fmt.Errorf("demo data of today: %w", err)
	}
	clock.SetOffset(0)
	return writeBills(m.Settings.Data.Dir)
}

// setDay sets the clock to the morning of a day; day 0 is the first.
func (b *builder) setDay(day int) {
	b.clock.SetOffset(-time.Duration(days-day)*24*time.Hour + time.Duration(b.random.IntN(300))*time.Minute)
}

// setTimeAgo sets the clock to a time before now.
func (b *builder) setTimeAgo(d time.Duration) { b.clock.SetOffset(-d) }

// advanceClock moves the clock forward.
func (b *builder) advanceClock(d time.Duration) { b.clock.SetOffset(b.clock.Offset() + d) }

// createDay creates the data of one day.
func (b *builder) createDay(ctx context.Context, day int) error {
	for _, step := range []func(ctx context.Context, day int) error{b.createCustomers, b.advanceVerifications, b.createPersonas, b.createPayer, b.createTasks, b.continueChats} {
		if err := step(ctx, day); err != nil {
			return err
		}
	}
	if day%10 == 0 {
		return b.Customers.RunExpiry(ctx)
	}
	return nil
}

var roleNames = map[string]string{access.Advisor: "Advisor", access.Customer: "Customer"}

// createUsers creates the users. The first start has created the administrator.
func (b *builder) createUsers(ctx context.Context, key string, manifest *Manifest) error {
	b.admin = &person{name: "Claire Aubry"}
	var session struct {
		Token string `json:"access_token"`
	}
	if err := b.api.post(ctx, &person{}, "/authenticate", object{"user_id": manifest.Admin, "password": manifest.Password}, &session); err != nil {
		return err
	}
	var me record
	if err := b.api.get(ctx, &person{token: session.Token}, "/v1/users/me", &me); err != nil {
		return err
	}
	b.admin.id = me.ID
	if err := b.api.do(ctx, &person{token: session.Token}, http.MethodPatch, "/v1/users/"+me.ID, object{"display_name": b.admin.name}, nil); err != nil {
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
		user, err := b.Users.Create(ctx, directory.NewUser{Value: s.email, DisplayName: s.name, Password: manifest.PasswordOf(roleNames[s.role]), Roles: []string{s.role}, Language: s.language})
		if err != nil {
			return err
		}
		p := &person{id: user.ID, name: s.name}
		if s.role == access.Advisor {
			b.staff = append(b.staff, p)
		} else {
			b.customer = p
		}
	}
	// The registrant has a user name: an e-mail address cannot be used to sign in before it is validated by a code.
	return b.api.post(ctx, &person{}, "/v1/users/initiate-registration", object{"credential_type": "username",
		"credential_value": registrant, "password": manifest.PasswordOf("Registrant"), "terms_accepted": true, "privacy_policy_accepted": true},
		nil, "X-API-Key", key)
}

// PrintSignIns writes the address, the sign-ins of one user for each role and, unless the environment sets it, the API key.
func PrintSignIns(w io.Writer, url string, m *Manifest) error {
	var text strings.Builder
	fmt.Fprintf(&text, "\nThe demo is running at %s. Sign in with:\n\n", url)
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
