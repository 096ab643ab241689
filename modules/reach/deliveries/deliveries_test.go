package deliveries_test

import (
	"errors"
	"maps"
	"slices"
	"testing"

	"kontor/modules/reach/deliveries"
	"kontor/server/access"
	"kontor/server/endpoint"
	"kontor/server/servertest"
	"kontor/store"
)

const path = "/v1/notifications/deliveries"

func TestDeliveries_AreListedForAdministrators(t *testing.T) {
	s := servertest.Start(t)
	err := s.DB.InTx(t.Context(), func(tx *store.Tx) error {
		for _, recipient := range []string{"Anna@bank.example", "beat@bank.example"} {
			if err := s.Deliveries.Enqueue(t.Context(), tx, []deliveries.Delivery{{UserID: store.NewID(), Channel: deliveries.Email,
				Recipient: recipient, Subject: "Hello", Text: "Hello " + recipient, HTML: "<p>", Secret: true}}); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	// An advisor who may call the endpoint still lacks the right to read deliveries.
	advisor := s.User(access.Advisor)
	s.Admin().Create("/v1/rbac/grants", servertest.Body{"user_id": advisor.UserID, "endpoint": "GET " + path})
	servertest.Run(t, s, []servertest.Scenario{
		{Name: "without a token", Method: "GET", Path: path, Status: 401},
		{Name: "a customer", As: s.User(access.Customer), Method: "GET", Path: path, Status: 403, Contains: []string{"common.rbac_no_rec_access"}},
		{Name: "an advisor", As: advisor, Method: "GET", Path: path, Status: 403, Contains: []string{"common.rbac_no_rec_access"}},
		{Name: "a search by text", As: s.Admin(), Method: "GET", Path: path + "?search.text=x", Status: 500, Contains: []string{"query_m.invalid_search_field"}},
	})
	var page struct {
		Data            []map[string]any
		Total           int
		TotalUnfiltered int `json:"total_unfiltered"`
	}
	s.Admin().Do("GET", path+"?search.to=ANNA@bank.example&search.status=sent", nil).Expect(t, 200).Into(t, &page)
	if page.Total != 1 || page.TotalUnfiltered != 2 {
		t.Fatalf("got %+v", page)
	}
	row := page.Data[0]
	members := []string{"attempts", "channel", "created_at", "id", "last_error", "next_attempt_at", "notification_id", "sent_at", "status", "subject",
		"text", "to", "user_id"}
	if got := slices.Sorted(maps.Keys(row)); !slices.Equal(got, members) {
		t.Errorf("the members are %v, want %v", got, members)
	}
	if row["text"] != "Hello Anna@bank.example" || row["notification_id"] != nil || row["attempts"] != 1.0 {
		t.Errorf("got %v", row)
	}
}

func TestDeliveries_HideSecretsAndAreRetried(t *testing.T) {
	s := servertest.Start(t)
	anna, admin := s.User(access.Customer), s.Admin()
	id := store.NewID()
	insert := func(id, status string, secret bool) {
		err := s.DB.InTx(t.Context(), func(tx *store.Tx) error {
			_, err := tx.Exec(t.Context(), `INSERT INTO deliveries (id, user_id, channel, recipient, recipient_key, text, secret, status, created_at)
				VALUES ($1, $2, 'sms', '+41446681800', '+41446681800', 'code 012345', $3, $4, $5)`, id, anna.UserID, secret, status, tx.Now())
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	insert(id, "dead", true)
	sent := store.NewID()
	insert(sent, "sent", true)
	servertest.Run(t, s, []servertest.Scenario{
		{Name: "a secret that has not been sent", As: admin, Method: "GET", Path: path + "?search.id=" + id, Status: 200, Contains: []string{id, `"text":""`}, Excludes: []string{"012345"}},
		{Name: "in the local outbox", As: admin, Method: "GET", Path: path + "?search.id=" + sent, Status: 200, Contains: []string{"012345"}},
		{Name: "retry without the right", As: anna, Method: "POST", Path: path + "/" + id + "/retry", Status: 403},
		{Name: "retry of an unknown delivery", As: admin, Method: "POST", Path: path + "/" + store.NewID() + "/retry", Status: 404, Contains: []string{"notifications.delivery_not_found"}},
		{Name: "retry", As: admin, Method: "POST", Path: path + "/" + id + "/retry", Status: 200, Contains: []string{`"status":"sent"`, id}},
		{Name: "retry of a delivery that is not dead", As: admin, Method: "POST", Path: path + "/" + id + "/retry", Status: 409, Contains: []string{"notifications.delivery_not_dead"}},
	})
}

func TestRetry_ResetsTheAttemptsOfADeadDelivery(t *testing.T) {
	g := &fakeGateway{answer: func(deliveries.Delivery) error {
		return &deliveries.SendError{Permanent: true, Cause: errors.New("no")}
	}}
	h := newQueueTest(t, deliveries.Options{Email: g})
	id := h.enqueue("email", "x")
	h.until(id, "dead")
	g.mu.Lock()
	g.answer = nil
	g.mu.Unlock()
	admin := access.Caller{UserID: store.NewID(), Roles: []string{access.Administrator}}
	ctx := access.With(t.Context(), admin.WithPolicy(access.NewPolicy(access.PolicyData{})))
	if d, err := h.Retry(ctx, endpoint.ByID{ID: id}); err != nil || d.Status != "queued" || d.Attempts != 0 {
		t.Fatalf("got %+v, %v", d, err)
	}
	h.until(id, "sent")
}
