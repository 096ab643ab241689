package demo

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"

	"kontor/modules/identity/directory"
	"kontor/store"
)

// manifestName is the file that marks a data directory as a demo. It holds the passwords of all roles and the API key in
// plain text, because every start prints them and a demo needs no protection.
const manifestName = "demo.json"

// Manifest describes a demo: its administrator, its secrets, and whether all data were created.
type Manifest struct {
	Admin     string            `json:"admin"`     // the administrator's e-mail address
	Password  string            `json:"password"`  // of the administrator, and of roles that are not in Passwords
	Passwords map[string]string `json:"passwords"` // by role
	APIKey    string            `json:"api_key"`   // empty when the environment sets it
	Complete  bool              `json:"complete"`  // all data were created

	path string
}

// ErrNotDemo reports that a directory holds other data than a demo.
var ErrNotDemo = errors.New("--demo needs an empty data directory or one that --demo has created; choose another with --data.dir")

// Prepare reads the manifest of a demo in a data directory, or creates one for an empty or missing directory. For a new
// demo, admin and password are those of the administrator; empty means a default address and a random password. A demo
// whose creation was interrupted is created again, see [Manifest.Begin].
func Prepare(dir, admin, password string) (*Manifest, error) {
	m := &Manifest{Admin: defaultAdmin, path: filepath.Join(dir, manifestName)}
	data, err := os.ReadFile(m.path)
	switch {
	case err == nil:
		if err := json.Unmarshal(data, m); err != nil {
			return nil, fmt.Errorf("read %s: %w", m.path, err)
		}
		if m.Complete {
			return m, nil
		}
		return m.generateSecrets(admin, password), nil
	case !errors.Is(err, fs.ErrNotExist):
		return nil, err
	}
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	for _, e := range entries {
		if e.Name() != newManifestName && e.Name() != "kontor.lock" { // of an interrupted start
			return nil, fmt.Errorf("%s holds other data: %w", dir, ErrNotDemo)
		}
	}
	return m.generateSecrets(admin, password), nil
}

// generateSecrets generates the secrets of a new demo. Each role has its own password.
func (m *Manifest) generateSecrets(admin, password string) *Manifest {
	if admin != "" {
		m.Admin = admin
	}
	if m.Password = password; m.Password == "" {
		m.Password = rand.Text()
	}
	m.APIKey, m.Passwords = "", map[string]string{}
	for _, role := range []string{"Advisor", "Customer", "Registrant"} {
		m.Passwords[role] = rand.Text()
	}
	return m
}

// PasswordOf returns the password of the users with a role. Demos of earlier versions have one password for all roles.
func (m *Manifest) PasswordOf(role string) string {
	if password, ok := m.Passwords[role]; ok {
		return password
	}
	return m.Password
}

// Begin deletes the data of an interrupted creation, and saves the manifest of an incomplete demo.
func (m *Manifest) Begin() error {
	if err := store.Discard(filepath.Dir(m.path)); err != nil {
		return err
	}
	return m.Save(false)
}

// bills returns the directory of the sample bills.
func (m *Manifest) bills() string { return filepath.Join(filepath.Dir(m.path), billsName) }

// newManifestName is the name of the file until it is complete.
const newManifestName = manifestName + ".new"

// Save writes the manifest: first when the creation begins, and again when it is complete.
func (m *Manifest) Save(complete bool) error {
	m.Complete = complete
	data, err := json.Marshal(m) //nolint:gosec // the passwords of a demo are printed at every start
	if err != nil {
		return err
	}
	temporary := filepath.Join(filepath.Dir(m.path), newManifestName)
	if err := os.WriteFile(temporary, append(data, '\n'), 0o600); err != nil {
		return err
	}
	return os.Rename(temporary, m.path)
}

// configure creates a custom role, API keys, and rate limits, as the administrator.
func (b *builder) configure(ctx context.Context) error {
	if err := b.createAuditor(ctx); err != nil {
		return err
	}
	for _, name := range []string{"Website", "Mobile app", "Pilot 2025"} {
		var created record
		if err := b.api.post(ctx, b.admin, "/v1/api-keys", object{"name": name}, &created); err != nil {
			return err
		}
		if name == "Pilot 2025" {
			if err := b.api.do(ctx, b.admin, http.MethodDelete, "/v1/api-keys/"+created.ID, nil, nil); err != nil {
				return err
			}
		}
	}
	for _, rule := range []object{
		{"endpoint": "GET /v1/customers", "per_minute": 600},
		{"endpoint": "POST /v1/invoices/qrcode", "per_minute": 60},
		{"endpoint": "POST /v1/chats/{id}/messages", "per_minute": 240},
	} {
		if err := b.api.do(ctx, b.admin, http.MethodPut, "/v1/rate-limits", rule, nil); err != nil {
			return err
		}
	}
	return nil
}

// createAuditor creates a role that may only read, and a user who holds it.
func (b *builder) createAuditor(ctx context.Context) error {
	var role record
	if err := b.api.post(ctx, b.admin, "/v1/rbac/roles", object{"name": "Auditor", "description": "Reads customers and the audit trail, changes nothing."}, &role); err != nil {
		return err
	}
	for _, recType := range []string{"customers", "audit"} {
		if err := b.api.post(ctx, b.admin, "/v1/rbac/grants", object{"role_id": role.ID, "rec_type": recType, "permissions": []string{"read", "read_all"}}, nil); err != nil {
			return err
		}
	}
	for _, endpoint := range []string{"GET /v1/customers", "GET /v1/customers/{id}", "GET /v1/customers/{id}/kyc", "GET /v1/audit", "GET /v1/audit/status"} {
		if err := b.api.post(ctx, b.admin, "/v1/rbac/grants", object{"role_id": role.ID, "endpoint": endpoint}, nil); err != nil {
			return err
		}
	}
	// The password of this user is not printed: the demo prints one sign-in per built-in role.
	_, err := b.Users.Create(ctx, directory.NewUser{Value: "audit@kontor.localhost", DisplayName: "Reto Zgraggen", Password: rand.Text(), Roles: []string{"Auditor"}, Language: "de"})
	return err
}
