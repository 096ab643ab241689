package tasks_test

import (
	"context"
	"errors"
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"kontor/modules/bank/tasks"
	"kontor/modules/identity/directory"
	"kontor/modules/kit/event"
	"kontor/server/access"
	"kontor/server/apierr"
	"kontor/store"
	"kontor/store/storetest"
	"kontor/store/testenv"
)

// recorder records events.
type recorder struct{ events []event.Event }

func (r *recorder) Prerender(_ context.Context, n event.Event) event.Event { return n }

func (r *recorder) Notify(_ context.Context, _ *store.Tx, n event.Event) error {
	r.events = append(r.events, n)
	return nil
}

// allowAll allows everything with every customer.
type allowAll struct{}

func (allowAll) Allow(context.Context, store.Querier, string, access.Permission) error { return nil }

func (allowAll) NotErased(context.Context, store.Querier, string) error { return nil }

type keysAsTexts struct{}

func (keysAsTexts) Text(_, key string, _ map[string]any) string { return key }

// fixture is the module on a database with a customer and some users.
type fixture struct {
	*tasks.Service
	recorded *recorder
	customer string
	users    []string
}

func newFixture(t testing.TB, users int) fixture {
	t.Helper()
	db := storetest.Open(t)
	b := fixture{recorded: &recorder{}, customer: store.NewID()}
	b.Service = tasks.New(db, b.recorded, allowAll{}, directory.New(db, nil, nil, nil, directory.Options{}), keysAsTexts{})
	err := db.InTx(t.Context(), func(tx *store.Tx) error {
		for range users {
			id := store.NewID()
			b.users = append(b.users, id)
			if _, err := tx.Exec(t.Context(), `INSERT INTO users (id, status, language, created_at, created_by, modified_at, modified_by)
				VALUES ($1, 'active', 'en', $2, $1, $2, $1)`, id, tx.Now()); err != nil {
				return err
			}
		}
		_, err := tx.Exec(t.Context(), `INSERT INTO customers (id, type, first_name, first_name_key, last_name, last_name_key, email, email_key, has_address,
				street, city, city_key, postal_code, country, kyc_status, verification_level, metadata, language, created_at, created_by, updated_at, updated_by)
			VALUES ($1, 'individual', 'Ada', 'ada', 'Muster', 'muster', 'a@example.ch', 'a@example.ch', FALSE, '', '', '', '', '', 'not_started', 'none', '{}', '', $2, $3, $2, $3)`,
			b.customer, tx.Now(), b.users[0])
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func as(userID string) context.Context {
	return access.With(context.Background(), access.Caller{UserID: userID}.WithPolicy(access.NewPolicy(access.PolicyData{})))
}

// validated runs the validation of a request.
func validated(in interface{ Validate(v *apierr.Fields) }) error {
	var problems apierr.Fields
	in.Validate(&problems)
	return problems.Err()
}

// part is an assignee in the model.
type part struct {
	id     string
	weight int64
	done   bool
}

// In any order of changes of the assignees, the weights equal those of the model. The task is completed as soon as all
// assignees have completed their parts, and not before.
func TestProgress_EqualsTheModel(t *testing.T) {
	testenv.Checks(t, 25, 100, 1000)
	b := newFixture(t, 6)
	creator := b.users[0]
	rapid.Check(t, func(r *rapid.T) {
		ok := func(err error) {
			r.Helper()
			if err != nil {
				r.Fatal(err)
			}
		}
		given := rapid.Int64Range(0, 9).Draw(r, "given weight")
		create := tasks.CreateInput{CustomerID: b.customer, Title: "x", Category: "sign", Weight: &given}
		ok(validated(&create))
		task, err := b.Create(as(creator), create)
		ok(err)
		model := map[string]*part{} // by user
		completed := false
		users := func(r *rapid.T) string {
			if len(model) == 0 {
				r.Skip("nobody is assigned")
			}
			return rapid.SampledFrom(slices.Sorted(maps.Keys(model))).Draw(r, "who")
		}
		// A task that has ended rejects all changes.
		over := func(err error) bool {
			r.Helper()
			if completed && !errors.Is(err, apierr.TaskInvalidTransition) {
				r.Fatalf("at the end of the task got %v", err)
			}
			return completed
		}
		settle := func() {
			completed = len(model) > 0
			for _, p := range model {
				completed = completed && p.done
			}
		}
		r.Repeat(map[string]func(*rapid.T){
			"assign": func(r *rapid.T) {
				var free []string
				for _, userID := range b.users {
					if model[userID] == nil {
						free = append(free, userID)
					}
				}
				if len(free) == 0 {
					r.Skip("all are assigned")
				}
				weight := rapid.Int64Range(0, 5).Draw(r, "weight")
				in := tasks.AssignInput{CustomerID: b.customer, ID: task.ID, UserID: rapid.SampledFrom(free).Draw(r, "who"), Weight: &weight}
				ok(validated(&in))
				a, err := b.Assign(as(creator), in)
				if over(err) {
					return
				}
				ok(err)
				model[in.UserID] = &part{id: a.ID, weight: weight}
			},
			"say done or not": func(r *rapid.T) {
				userID := users(r)
				done := !model[userID].done
				_, err := b.SetAssigneeStatus(as(userID), tasks.AssigneeStatusInput{CustomerID: b.customer, ID: task.ID, AssigneeID: model[userID].id, TaskCompleted: &done})
				if over(err) {
					return
				}
				ok(err)
				model[userID].done = done
				settle()
			},
			"take away": func(r *rapid.T) {
				userID := users(r)
				_, err := b.Unassign(as(creator), tasks.AssigneeInput{CustomerID: b.customer, ID: task.ID, AssigneeID: model[userID].id})
				if over(err) {
					return
				}
				ok(err)
				delete(model, userID)
				settle()
			},
			"": func(r *rapid.T) {
				got, err := b.Get(as(creator), tasks.OneInput{CustomerID: b.customer, ID: task.ID})
				ok(err)
				weight, performed := given, int64(0)
				if len(model) > 0 {
					weight = 0
				}
				for _, p := range model {
					weight += p.weight
					if p.done {
						performed += p.weight
					}
				}
				if got.Weight != weight || got.PerformedWeight != performed || (got.Status == tasks.Completed) != completed {
					r.Fatalf("got %d of %d, %s; want %d of %d, completed %t", got.PerformedWeight, got.Weight, got.Status, performed, weight, completed)
				}
			},
		})
	})
}

func TestEvents_GoToCreatorAndAssigneesExceptTheCaller(t *testing.T) {
	b := newFixture(t, 4)
	creator, one, two, late := b.users[0], b.users[1], b.users[2], b.users[3]
	create := tasks.CreateInput{CustomerID: b.customer, Title: "Vertrag", Category: "sign",
		Assignees: []tasks.AssigneeData{{UserID: one}, {UserID: two}, {UserID: creator}}}
	if err := validated(&create); err != nil {
		t.Fatal(err)
	}
	task, err := b.Create(as(creator), create)
	if err != nil {
		t.Fatal(err)
	}
	want := func(event event.Kind, recipients ...string) {
		t.Helper()
		if len(b.recorded.events) != 1 {
			t.Fatalf("got %d events, want one", len(b.recorded.events))
		}
		n := b.recorded.events[0]
		b.recorded.events = nil
		if n.Kind != event || !slices.Equal(n.Recipients, recipients) || n.RecordID != task.ID || n.Type != access.Tasks ||
			n.CustomerID != b.customer || n.Args["Title"] != "Vertrag" {
			t.Errorf("got %+v, want %s for %v", n, event, recipients)
		}
	}
	want(event.TaskAssigned, one, two)
	assign := tasks.AssignInput{CustomerID: b.customer, ID: task.ID, UserID: late}
	if err := validated(&assign); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Assign(as(creator), assign); err != nil {
		t.Fatal(err)
	}
	want(event.TaskAssigned, late)
	if _, err := b.SetStatus(as(creator), tasks.StatusInput{CustomerID: b.customer, ID: task.ID, Status: tasks.InProgress}); err != nil {
		t.Fatal(err)
	}
	want(event.TaskStatusChanged, one, two, late)
	done := true
	task, err = b.Get(as(creator), tasks.OneInput{CustomerID: b.customer, ID: task.ID})
	if err != nil {
		t.Fatal(err)
	}
	assignees, err := task.Assignees.List()
	if err != nil {
		t.Fatal(err)
	}
	for i, a := range assignees {
		if i > 0 && len(b.recorded.events) > 0 {
			t.Fatalf("a completed part is no new status of the task, but got %+v", b.recorded.events)
		}
		if _, err := b.SetAssigneeStatus(as(a.UserID), tasks.AssigneeStatusInput{CustomerID: b.customer, ID: task.ID, AssigneeID: a.ID, TaskCompleted: &done}); err != nil {
			t.Fatal(err)
		}
	}
	want(event.TaskStatusChanged, creator, one, two, creator)
}
