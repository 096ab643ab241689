// Command dataset fills an empty data directory with as many customers and notifications as a bank has after years, for
// measurements. It uses the services of the modules, in many transactions at once, so that "kontor check" finds the database
// intact. Run it with "make dataset DIR=big-data".
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"time"

	"golang.org/x/sync/errgroup"

	"kontor/modules/app"
	"kontor/modules/bank/customers"
	"kontor/modules/identity/directory"
	"kontor/modules/kit/event"
	"kontor/modules/kit/list"
	"kontor/server/access"
	"kontor/server/apierr"
	"kontor/server/endpoint"
	"kontor/server/settings"
	"kontor/store"
)

const (
	// users is how many users receive notifications. The first has the largest inbox: a fourteenth of all.
	users = 40
	// callers is how many transactions are under way at once.
	callers = 256
	// email and password sign the first user in, who is an administrator.
	email, password = "admin@kontor.localhost", "of a data set, not a bank"
)

func main() {
	dir := flag.String("data.dir", "", "an empty or missing directory")
	customers := flag.Int("customers", 251_000, "how many customers")
	notified := flag.Int("notifications", 2_950_000, "how many notifications")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	began := time.Now()
	err := fill(ctx, *dir, *customers, *notified)
	stop()
	if err != nil {
		slog.Error("no data set", "err", err)
		os.Exit(1) //nolint:forbidigo // this is main
	}
	fmt.Printf("%s has %d customers and %d notifications, made in %s; sign in as %s with %q\n", //nolint:forbidigo // this is main
		*dir, *customers, *notified, time.Since(began).Round(time.Second), email, password)
}

// fill creates the database and its records.
func fill(ctx context.Context, dir string, wanted, notified int) (err error) {
	r, err := settings.Load(settings.Input{Flags: map[string][]string{"data.dir": {dir}, "quotas.records_per_user": {"1000000000"}, "quotas.megabytes_per_user": {"1000000"}}})
	if err != nil {
		return err
	}
	r.Settings.Secrets.AdminEmail, r.Settings.Secrets.AdminPassword = "operator@kontor.localhost", password
	log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	db, err := store.Open(ctx, store.Options{Dir: dir, Log: log})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	m, err := app.New(db, app.Options{Settings: r.Settings, Log: log})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, m.Close(context.WithoutCancel(ctx))) }()
	if err := m.Start(ctx); err != nil {
		return err
	}
	if boot, err := m.Boot(ctx); err != nil || boot == nil {
		return cmp.Or(err, fmt.Errorf("%s is not empty", dir))
	}
	if err := m.Shown(ctx); err != nil {
		return err
	}
	people, err := createUsers(ctx, m)
	if err != nil {
		return err
	}
	if err := createCustomers(ctx, m, people, wanted); err != nil {
		return err
	}
	return notify(ctx, m, people, notified)
}

// createUsers returns the contexts of the users, the administrator first.
func createUsers(ctx context.Context, m *app.Modules) ([]context.Context, error) {
	var all []context.Context
	for i := range users {
		user := directory.NewUser{Value: fmt.Sprintf("advisor%d@kontor.localhost", i), Roles: []string{access.Advisor}, Password: password, Language: "de", DisplayName: fmt.Sprintf("Advisor %d", i)}
		if i == 0 {
			user.Value, user.Roles = email, []string{access.Administrator}
		}
		created, err := m.Users.Create(as(ctx, m, store.NilID, access.Administrator), user)
		if err != nil {
			return nil, err
		}
		all = append(all, as(ctx, m, created.ID, user.Roles[0]))
	}
	return all, nil
}

// as returns a context with a caller.
func as(ctx context.Context, m *app.Modules, userID, role string) context.Context {
	caller := access.Caller{UserID: userID, Roles: []string{role}}
	return endpoint.With(access.With(ctx, caller.WithPolicy(m.Policy.Load())), &endpoint.Info{Now: time.Now()})
}

// each calls f for the numbers up to n, from many goroutines, until one call fails.
func each(ctx context.Context, n int, f func(i int) error) error {
	group, limited := errgroup.WithContext(ctx)
	group.SetLimit(callers)
	for i := 0; i < n && limited.Err() == nil; i++ {
		group.Go(func() error { return f(i) })
	}
	return cmp.Or(group.Wait(), ctx.Err())
}

var (
	firstNames  = []string{"Vreni", "Luca", "Élodie", "Jürg", "Chiara", "Søren", "Anna", "Beat", "Noémie", "Tim"}
	lastNames   = []string{"Muster", "Müller", "Brunner", "Favre", "Rossi", "Zürcher", "Bernasconi", "Keller", "Dupont", "Straßer"}
	cities      = []string{"Zürich", "Genève", "Lugano", "Bern", "Basel", "Lausanne", "Chur", "St. Gallen"}
	nationality = []string{"CHE", "DEU", "FRA", "ITA", "AUT"}
	kinds       = []event.Kind{event.TaskAssigned, event.TaskStatusChanged, event.CustomerStatusChanged, event.KYCDocumentExpiring, event.MessageReceived}
)

func createCustomers(ctx context.Context, m *app.Modules, people []context.Context, n int) error {
	return each(ctx, n, func(i int) (err error) {
		in := customers.CreateInput{
			FirstName: firstNames[i%len(firstNames)], LastName: fmt.Sprintf("%s %d", lastNames[i/7%len(lastNames)], i),
			Email: fmt.Sprintf("customer%d@example.ch", i), Phone: fmt.Sprintf("+4179%07d", i%10_000_000),
			DateOfBirth: time.Date(1940+i%60, time.Month(1+i%12), 1+i%28, 0, 0, 0, 0, time.UTC).Format(time.DateOnly), Nationality: nationality[i%len(nationality)],
			Address: &customers.Address{Street: fmt.Sprintf("Bahnhofstrasse %d", i%200+1), City: cities[i%len(cities)], PostalCode: fmt.Sprint(1000 + i%8999), Country: "CHE"},
		}
		if i%20 == 0 {
			in.Type, in.DateOfBirth, in.Nationality = customers.Business, "", ""
		}
		caller := people[i%len(people)]
		var wrong apierr.Fields
		if in.Validate(caller, &wrong); wrong.Err() != nil {
			for field, text := range wrong.All {
				err = fmt.Errorf("customer %d: %s: %s", i, field, text.Key)
			}
			return err
		}
		_, err = m.Customers.Create(caller, in)
		return err
	})
}

// notify sends events to all users, and further ones to the first. Half of the users have read theirs.
func notify(ctx context.Context, m *app.Modules, people []context.Context, n int) error {
	ids := make([]string, len(people))
	for i, person := range people {
		ids[i] = access.From(person).UserID
	}
	largest := n / 14
	shared := (n - largest) / (len(ids) - 1)
	extra := max(0, largest-shared)
	send := func(i int, recipients []string) error {
		e := event.Event{Kind: kinds[i%len(kinds)], Type: access.Customers, RecordID: store.NewID(), Recipients: recipients, Args: map[string]any{"Name": "Vreni Muster"}}
		return m.DB.InTx(ctx, func(tx *store.Tx) error { return m.Notifications.Notify(ctx, tx, e) })
	}
	if err := each(ctx, shared, func(i int) error { return send(i, ids) }); err != nil {
		return err
	}
	if err := each(ctx, extra, func(i int) error { return send(i, ids[:1]) }); err != nil {
		return err
	}
	for _, person := range people[len(people)/2:] {
		if _, err := m.Notifications.MarkAll(person, list.Input{}); err != nil {
			return err
		}
	}
	return nil
}
