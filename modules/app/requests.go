package app

import (
	"cmp"
	"context"
	"os"

	"kontor/modules/developer/requestlog"
	"kontor/modules/identity/rbac"
	"kontor/server"
	"kontor/server/access"
)

// sandboxRequests is how many requests a sandbox keeps.
const sandboxRequests = 10_000

// newRequests builds the log of requests.
func newRequests(m *Modules) *requestlog.Service {
	keep := m.Settings.Requests.Keep
	if m.InSandbox() {
		keep = cmp.Or(keep, sandboxRequests)
	}
	node := m.Settings.Cluster.Node
	if node == "" {
		node, _ = os.Hostname() // a machine without a name has none
	}
	return requestlog.New(m.DB, m.Auth, rights{m}, requestlog.Options{
		Keep: keep, Bodies: m.InSandbox(), Node: node, BaseURL: m.Settings.Server.BaseURL, Heartbeat: m.Settings.Notifications.SSE.Heartbeat,
		ConnectionsPerUser: m.Settings.Notifications.SSE.ConnectionsPerUser, Policy: m.Policy, TermsDue: m.termsDue(&m.held.requests), Texts: m.Texts, Log: m.Log,
	})
}

// requests returns what notes the requests of the server; nil if the log is off.
func (m *Modules) requests() server.Requests {
	if !m.Requests.On() {
		return nil
	}
	return m.Requests
}

// rights answers with the permission check.
type rights struct{ modules *Modules }

// Look reports whether a record exists, and whether a user has the permission on it now.
func (r rights) Look(ctx context.Context, userID string, t access.RecordType, wanted access.Permission, id string) (exists, allowed bool, err error) {
	roles, err := r.modules.Users.RolesOf(ctx, r.modules.DB, userID)
	if err != nil {
		return false, false, err
	}
	caller := access.Caller{UserID: userID, Roles: roles}.WithPolicy(r.modules.Policy.Load())
	decisions, err := r.modules.RBAC.Decide(ctx, caller, []rbac.Check{{RecType: t.Name, Permission: wanted.String(), RecID: id}})
	if err != nil {
		return false, false, err
	}
	return !decisions[0].Missing, decisions[0].Allowed, nil
}
