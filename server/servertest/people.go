package servertest

import (
	"net/http"
	"testing"

	"kontor/server/endpoint"
)

// Named sets the display name of the client's user and returns the client.
func (c *Client) Named(t testing.TB, name string) *Client {
	t.Helper()
	c.Do("PATCH", "/v1/users/"+c.UserID, map[string]any{"display_name": name}).Expect(t, http.StatusOK)
	return c
}

// People returns the member people of the body, by user id.
func (r Response) People(t testing.TB) map[string]endpoint.Person {
	t.Helper()
	var answer struct {
		People map[string]endpoint.Person `json:"people"`
	}
	r.Into(t, &answer)
	return answer.People
}
