package rbac_test

import (
	"fmt"
	"sync"
	"testing"

	"kontor/store/testenv"
)

// TestGrants_InForceUnderLoad grants, uses, revokes and checks from 64 goroutines at once. Each change must be in force for
// the next request of its goroutine.
func TestGrants_InForceUnderLoad(t *testing.T) {
	h := newHarness(t)
	const rounds = 4
	workers := testenv.Rounds(16, 64, 64)
	var wait sync.WaitGroup
	for i := range workers {
		role := h.role(fmt.Sprintf("Worker %d", i))
		user, persona := h.user(role), h.persona(h.root)
		h.grant(object{"user_id": user, "endpoint": "GET /v1/personas/{persona_id}"})
		h.grant(object{"user_id": user, "endpoint": "POST /v1/rbac/check"})
		grants := []object{
			{"role_id": role, "rec_type": "personas", "permissions": []string{"read"}},
			{"user_id": user, "rec_type": "personas", "permissions": []string{"read"}, "rec_id": persona},
		}
		wait.Go(func() {
			for round := range rounds {
				if err := h.grantUseRevoke(user, persona, grants[(i+round)%len(grants)]); err != nil {
					t.Errorf("worker %d, round %d: %v", i, round, err)
					return
				}
			}
		})
	}
	wait.Wait()
}

func (h *harness) grantUseRevoke(user, persona string, grant object) error {
	asked := object{"checks": []object{{"rec_type": "personas", "permission": "read", "rec_id": persona}}}
	expect := func(status int, user, method, path string, body any) (answer, error) {
		a, err := h.try(user, method, path, body)
		if err == nil && a.status != status {
			err = fmt.Errorf("%s %s: got %d, want %d: %s", method, path, a.status, status, a.text)
		}
		return a, err
	}
	allowed := func(want bool) error {
		status := 403
		if want {
			status = 200
		}
		if _, err := expect(status, user, "GET", "/v1/personas/"+persona, nil); err != nil {
			return err
		}
		a, err := expect(200, user, "POST", "/v1/rbac/check", asked)
		if err != nil {
			return err
		}
		if got := a.body["results"].([]any)[0].(map[string]any)["allowed"]; got != want {
			return fmt.Errorf("the check says %v, want %v", got, want)
		}
		return nil
	}
	made, err := expect(201, h.root, "POST", "/v1/rbac/grants", grant)
	if err == nil {
		err = allowed(true)
	}
	if err == nil {
		_, err = expect(200, h.root, "DELETE", "/v1/rbac/grants/"+made.id(), nil)
	}
	if err == nil {
		err = allowed(false)
	}
	return err
}
