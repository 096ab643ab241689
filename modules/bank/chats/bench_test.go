package chats_test

import (
	"fmt"
	"testing"
	"time"

	"kontor/server/access"
	"kontor/server/servertest"
	"kontor/store"
)

// fill writes messages to a chat directly, in few transactions.
func fill(b *testing.B, s *servertest.Server, chatID string, senders []string, n int) {
	b.Helper()
	const insert = `
		INSERT INTO chat_messages (id, chat_id, seq, sender_id, sender_seq, type, content, metadata, created_at)
		VALUES ($1, $2, $3, $4, $5, 'text', $6, '{}', $7)`
	const group = 5000
	for from := 0; from < n; from += group {
		err := s.DB.InTx(b.Context(), func(tx *store.Tx) error {
			for i := from; i < min(n, from+group); i++ {
				if _, err := tx.Exec(b.Context(), insert, store.NewID(), chatID, i+1, senders[i%len(senders)], i/len(senders)+1,
					"Guten Tag, die Unterlagen sind unterwegs.", tx.Now()); err != nil {
					return err
				}
			}
			_, err := tx.Exec(b.Context(), `UPDATE chats SET last_seq = $2 WHERE id = $1`, chatID, min(n, from+group))
			return err
		})
		if err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkBesideCustomers compares reading a chat and ten messages with reading a customer and ten customers, in turn
// on the same server.
func BenchmarkBesideCustomers(b *testing.B) {
	s := servertest.Start(b)
	anna, beat := s.User(access.Advisor), s.User(access.Customer)
	c := open(b, anna, beat)
	fill(b, s, c.ID, []string{anna.UserID, beat.UserID}, 1000)
	var customer string
	for i := range 100 {
		customer = anna.Create("/v1/customers", map[string]any{"first_name": "Ada", "last_name": fmt.Sprint("Muster ", i), "email": "ada@example.ch"})
	}
	for name, paths := range map[string][2]string{
		"get":  {"/v1/chats/" + c.ID, "/v1/customers/" + customer},
		"list": {"/v1/chats/" + c.ID + "/messages?limit=10", "/v1/customers?search.kyc_status=not_started&sort=-created_at&limit=10"},
	} {
		b.Run(name, func(b *testing.B) {
			servertest.Compare(b, s, 2000, 200, anna.Request("GET", paths[0], ""), anna.Request("GET", paths[1], ""))
		})
	}
}

// BenchmarkBigChat compares an unread chat of 100,000 messages with a new chat of as many participants.
func BenchmarkBigChat(b *testing.B) {
	s := servertest.Start(b)
	anna := s.User(access.Advisor)
	others := people(b, s, 255)
	open := func() string {
		return anna.Create("/v1/chats", map[string]any{"participants": others})
	}
	big, fresh := open(), open()
	fill(b, s, big, others, 100_000)
	fill(b, s, fresh, others, 100)
	for _, operation := range []struct {
		name, method, path, body string
		status, n                int
	}{
		{"get", "GET", "", "", 200, 2000},
		{"messages", "GET", "/messages?limit=10", "", 200, 2000},
		{"post", "POST", "/messages", `{"content":"Guten Tag"}`, 201, 300},
	} {
		b.Run(operation.name, func(b *testing.B) {
			request := func(id string) []byte {
				return anna.Request(operation.method, "/v1/chats/"+id+operation.path, operation.body)
			}
			servertest.Compare(b, s, operation.n, operation.status, request(big), request(fresh))
		})
	}
}

// BenchmarkList500 measures the processor time of one list for a user with 500 chats, in the server and for the request.
func BenchmarkList500(b *testing.B) {
	s := servertest.Start(b)
	anna := s.User(access.Advisor)
	others := people(b, s, 500)
	for i, other := range others {
		id := anna.Create("/v1/chats", map[string]any{"participants": []string{other}, "metadata": map[string]any{"title": fmt.Sprint("Chat ", i)}})
		fill(b, s, id, []string{anna.UserID, other}, 20)
	}
	request := anna.Request("GET", "/v1/chats", "")
	list := func(n int) { servertest.Load(b, s.Address, n, 200, func(int) []byte { return request }) }
	list(50)
	const round = 100
	var cpu time.Duration
	calls := 0
	for b.Loop() {
		before := servertest.ProcessorTime(b)
		list(round)
		cpu += servertest.ProcessorTime(b) - before
		calls += round
	}
	b.ReportMetric(cpu.Seconds()*1000/float64(calls), "cpu-ms/list")
}
