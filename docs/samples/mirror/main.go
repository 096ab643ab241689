// Command mirror keeps a copy of all customers in a file, by the change feed. It stops and continues at any time without missing
// a change.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log"
	"os"
	"os/signal"
	"strings"

	"kontor.local/client"
)

// mirror is the content of the file.
type mirror struct {
	After     string                     `json:"after"` // the last event that the copy contains
	Customers map[string]json.RawMessage `json:"customers"`

	name string
}

// read reads the file. Without one, the copy is empty.
func read(name string) (*mirror, error) {
	m := &mirror{name: name, Customers: map[string]json.RawMessage{}}
	data, err := os.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		return m, nil
	} else if err != nil {
		return nil, err
	}
	return m, json.Unmarshal(data, m)
}

// write replaces the file at once, so that it is never half written.
func (m *mirror) write() error {
	data, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return err
	}
	if err := os.WriteFile(m.name+".new", data, 0o600); err != nil {
		return err
	}
	return os.Rename(m.name+".new", m.name)
}

// apply brings the customer of an event up to date. The record is the present one, so a repeated event does no harm.
func (m *mirror) apply(e client.ChangeEvent) {
	switch {
	case len(e.Record) > 0 && string(e.Record) != "null":
		m.Customers[e.RecID] = e.Record
	default: // erased, or no longer readable for this caller
		delete(m.Customers, e.RecID)
	}
	m.After = e.ID
}

// load copies all customers and begins with the newest event. The feed may not reach back to the first customer.
func (m *mirror) load(ctx context.Context, kontor *client.Client) error {
	newest, err := kontor.Events.List(ctx, client.EventsListParams{After: "latest", Types: "customers.*"})
	if err != nil {
		return err
	}
	clear(m.Customers)
	for customer, err := range kontor.Customers.All(ctx, client.CustomersListParams{Sort: "id"}) {
		if err != nil {
			return err
		}
		record, err := json.Marshal(customer)
		if err != nil {
			return err
		}
		m.Customers[customer.ID] = record
	}
	m.After = newest.Next
	return m.write()
}

// follow applies all events after the last one, and further events until the context ends. With once, it ends when it has caught up.
func (m *mirror) follow(ctx context.Context, kontor *client.Client, once bool) error {
	params := client.EventsListParams{After: m.After, Types: "customers.*", Include: "record", Limit: 100}
	for {
		page, err := kontor.Events.List(ctx, params)
		if err != nil {
			return err
		}
		for _, e := range page.Data {
			m.apply(e)
		}
		m.After, params.After = page.Next, page.Next
		if err := m.write(); err != nil {
			return err
		}
		if !page.HasMore {
			break
		}
	}
	if once {
		return nil
	}
	for frame, err := range kontor.Events.Stream(ctx, params) {
		if err != nil {
			return err
		}
		if frame.Change != nil {
			m.apply(*frame.Change)
			if err := m.write(); err != nil {
				return err
			}
			fmt.Println(frame.Change.Type, frame.Change.RecID)
		}
	}
	return ctx.Err()
}

func run(ctx context.Context, name string, once bool) error {
	kontor, err := client.New(os.Getenv("KONTOR_URL"))
	if err != nil {
		return err
	}
	if err := kontor.SignIn(ctx, os.Getenv("KONTOR_USER"), os.Getenv("KONTOR_PASSWORD")); err != nil {
		return err
	}
	m, err := read(name)
	if err != nil {
		return err
	}
	if m.After == "" {
		err = m.load(ctx, kontor)
	}
	if err == nil {
		err = m.follow(ctx, kontor, once)
	}
	if errors.Is(err, client.ErrEventsCursorExpired) { // the program was off for longer than the feed reaches back
		if err = m.load(ctx, kontor); err == nil {
			err = m.follow(ctx, kontor, once)
		}
	}
	fmt.Println(len(m.Customers), "customers in", name)
	return err
}

func main() {
	args := strings.Join(os.Args[1:], " ")
	if args != "" && args != "--once" {
		log.Fatal("usage: mirror [--once]")
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, "customers.json", args == "--once"); err != nil && !errors.Is(err, context.Canceled) {
		log.Fatal(err)
	}
}
