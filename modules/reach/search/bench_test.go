package search_test

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"testing"
	"time"

	"kontor/server/access"
	"kontor/server/servertest"
	"kontor/store"
)

var (
	firstNames = []string{"Beat", "Anna", "Jörg", "Chiara", "Zoë", "Luca", "Élodie", "Søren", "Maria", "Hans", "Ursula", "Urs", "Reto", "Noémie", "Giulia", "Andrea"}
	lastNames  = []string{"Küng", "Müller", "Meier", "Bianchi", "Rossi", "Favre", "Weiss", "Zürcher", "Keller", "Brunner", "Steiner", "Fischer", "Gerber", "Huber", "Moser", "Aebischer"}
	endings    = []string{"", "li", "mann", "hofer", "son", "berger", "stein", "a", "ini", "et"}
)

const insertCustomer = `
	INSERT INTO customers (
		id, type, first_name, first_name_key, last_name, last_name_key, email, email_key, phone, has_address, street, city, city_key, postal_code, country,
		kyc_status, verification_level, metadata, language, created_at, created_by, updated_at, updated_by, version)
	VALUES ($1, 'individual', $2, $2, $3, $3, $4, $4, $5, FALSE, '', '', '', '', '', 'not_started', 'none', '{}', '', $6, $7, $6, $7, 1)`

// fill stores n customers whose names, addresses and numbers vary.
func fill(t testing.TB, s *servertest.Server, n int, owner string) {
	i := 0
	s.SkipRecordCheck()
	s.Fill(n, func(ctx context.Context, tx *store.Tx, group int) ([]string, error) {
		ids := make([]string, group)
		for j := range ids {
			ids[j] = store.NewID()
			first := firstNames[i%16]
			last := lastNames[i/16%16] + endings[i/256%10]
			if _, err := tx.Exec(ctx, insertCustomer, ids[j], first, last, fmt.Sprintf("%s.%d@post%d.example", first, i, i%50),
				fmt.Sprintf("+4179%07d", i), int64(tx.Now())+int64(i), owner); err != nil {
				return nil, err
			}
			i++
		}
		return ids, nil
	})
}

// BenchmarkSearch reports the time of searches over 250,000 customers, and of their first indexing.
func BenchmarkSearch(b *testing.B) {
	s := servertest.Start(b)
	const stored = 250_000
	few, many := s.User(access.Customer), s.User(access.Advisor)
	fill(b, s, stored-10_020, s.Admin().UserID)
	fill(b, s, 10_000, many.UserID)
	fill(b, s, 20, few.UserID)
	start := time.Now()
	for _, job := range s.Jobs() {
		if job.Name != "search.follow" {
			continue
		}
		for range 2 {
			if err := job.Run(b.Context()); err != nil {
				b.Fatal(err)
			}
		}
	}
	b.Logf("indexed in %v", time.Since(start))
	for _, text := range []string{"beat kung", "müller", "a", "m", "huberstein anna", "0790123456", "anna.51@post1", "nobody", "be ku"} {
		for name, c := range map[string]*servertest.Client{"administrator": s.Admin(), "advisor of 10000": many, "customer of 20": few} {
			for kind, path := range map[string]string{"search": "/v1/search?", "list": "/v1/customers?", "sorted list": "/v1/customers?sort=last_name&"} {
				path += "q=" + url.QueryEscape(text)
				var times []time.Duration
				found := ""
				for range 5 {
					begun := time.Now()
					r := c.Do("GET", path, nil)
					times = append(times, time.Since(begun))
					r.Expect(b, 200)
					if kind != "search" {
						found = fmt.Sprint(r.JSON(b)["total"])
					}
				}
				first := times[0]
				slices.Sort(times)
				fmt.Printf("%-16s %-17s %-12s median %v, first %v %s\n", text, name, kind, times[2].Round(time.Microsecond*100), first.Round(time.Microsecond*100), found)
			}
		}
	}
}
