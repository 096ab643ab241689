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

// markName is the file by which a data directory is known to be a demo. It holds the passwords of all roles and the API
// key of the demo, so that every start can print them; nothing in a demo is worth more than that.
const markName = "demo.json"

// Mark says that a data directory is a demo.
type Mark struct {
	Admin     string            `json:"admin"`     // the administrator's e-mail address
	Password  string            `json:"password"`  // the administrator's, and that of roles without one of their own
	Passwords map[string]string `json:"passwords"` // by role
	APIKey    string            `json:"api_key"`   // empty when it was given
	Complete  bool              `json:"complete"`  // everything was loaded

	path string
}

// ErrNotDemo says that a directory holds something else.
var ErrNotDemo = errors.New("--demo needs an empty data directory or one that --demo has made")

// Prepare finds the mark of a demo in a data directory, or makes one in an empty or missing directory. For a new demo
// admin is the administrator's e-mail address, given the password; empty means the usual one and a random one. A demo that
// was interrupted while it was made is made anew, see [Mark.Begin].
func Prepare(dir, admin, given string) (*Mark, error) {
	m := &Mark{Admin: defaultAdmin, path: filepath.Join(dir, markName)}
	data, err := os.ReadFile(m.path)
	switch {
	case err == nil:
		if err := json.Unmarshal(data, m); err != nil {
			return nil, fmt.Errorf("read %s: %w", m.path, err)
		}
		if m.Complete {
			return m, nil
		}
		return m.invent(admin, given), nil
	case !errors.Is(err, fs.ErrNotExist):
		return nil, err
	}
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	for _, e := range entries {
		if e.Name() != newMark && e.Name() != "kontor.lock" { // of a start that was cut off
			return nil, fmt.Errorf("%s holds other data: %w", dir, ErrNotDemo)
		}
	}
	return m.invent(admin, given), nil
}

// invent makes the secrets of a new demo. Each role has a password of its own.
func (m *Mark) invent(admin, given string) *Mark {
	if admin != "" {
		m.Admin = admin
	}
	if m.Password = given; m.Password == "" {
		m.Password = rand.Text()
	}
	m.APIKey, m.Passwords = "", map[string]string{}
	for _, role := range []string{"Advisor", "Customer", "Registrant"} {
		m.Passwords[role] = rand.Text()
	}
	return m
}

// PasswordOf returns the password of the users with a role. Demos of earlier versions have one for all.
func (m *Mark) PasswordOf(role string) string {
	if password, ok := m.Passwords[role]; ok {
		return password
	}
	return m.Password
}

// Begin marks the directory as a demo that is being made, and removes what an interrupted start has made of one.
func (m *Mark) Begin() error {
	if err := store.Discard(filepath.Dir(m.path)); err != nil {
		return err
	}
	return m.Save(false)
}

// bills is the directory of the sample bills.
func (m *Mark) bills() string { return filepath.Join(filepath.Dir(m.path), billsName) }

// newMark is the name of the mark until it is whole.
const newMark = markName + ".new"

// Save writes the mark, first when the demo is begun and again when it is complete.
func (m *Mark) Save(complete bool) error {
	m.Complete = complete
	data, err := json.Marshal(m) //nolint:gosec // the passwords of a demo are printed at every start
	if err != nil {
		return err
	}
	temporary := filepath.Join(filepath.Dir(m.path), newMark)
	if err := os.WriteFile(temporary, append(data, '\n'), 0o600); err != nil {
		return err
	}
	return os.Rename(temporary, m.path)
}
