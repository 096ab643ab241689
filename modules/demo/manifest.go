package demo

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

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
