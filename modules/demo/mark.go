package demo

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// markName is the file by which a data directory is known to be a demo. It holds the password of all users of the demo,
// so that every start can print it; nothing in a demo is worth more than that.
const markName = "demo.json"

// Mark says that a data directory is a demo.
type Mark struct {
	Admin    string `json:"admin"` // the administrator's e-mail address
	Password string `json:"password"`
	Complete bool   `json:"complete"` // everything was loaded

	path string
}

// ErrNotDemo says that a directory holds something else.
var ErrNotDemo = errors.New("--demo needs an empty data directory or one that --demo has made")

// Prepare finds the mark of a demo in a data directory, or makes one in an empty or missing directory. For a new demo
// admin is the administrator's e-mail address, given the password; empty means the usual one and a random one.
func Prepare(dir, admin, given string) (*Mark, error) {
	m := &Mark{Admin: defaultAdmin, path: filepath.Join(dir, markName)}
	data, err := os.ReadFile(m.path)
	switch {
	case err == nil:
		if err := json.Unmarshal(data, m); err != nil {
			return nil, fmt.Errorf("read %s: %w", m.path, err)
		}
		if !m.Complete {
			return nil, fmt.Errorf("the demo in %s was interrupted while it was made; remove the directory and start again", dir)
		}
		return m, nil
	case !errors.Is(err, fs.ErrNotExist):
		return nil, err
	}
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	if len(entries) > 0 {
		return nil, fmt.Errorf("%s holds other data: %w", dir, ErrNotDemo)
	}
	if admin != "" {
		m.Admin = admin
	}
	if m.Password = given; m.Password == "" {
		m.Password = rand.Text()
	}
	return m, nil
}

// bills is the directory of the sample bills.
func (m *Mark) bills() string { return filepath.Join(filepath.Dir(m.path), billsName) }

// Save writes the mark, first when the demo is begun and again when it is complete.
func (m *Mark) Save(complete bool) error {
	m.Complete = complete
	data, err := json.Marshal(m) //nolint:gosec // the password of a demo is printed at every start
	if err != nil {
		return err
	}
	return os.WriteFile(m.path, append(data, '\n'), 0o600)
}
