package tasks

import (
	"fmt"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"kontor/store"
)

// logEntry is a change as metadata.logs shows it.
type logEntry struct {
	At         store.Time `json:"at"`
	By         string     `json:"by"`
	Action     string     `json:"action"`
	From       string     `json:"from,omitzero"`
	To         string     `json:"to,omitzero"`
	Reason     string     `json:"reason,omitzero"`
	AssigneeID string     `json:"assignee_id,omitzero"`
	UserID     string     `json:"user_id,omitzero"`
	Fields     []string   `json:"fields,omitzero"`
}

// maxLogs is how many changes a task keeps. The audit trail has all.
const maxLogs = 100

// log adds a change. sign adds its time and author.
func (t *Task) log(e logEntry) { t.logs = append(t.logs, e) }

// sign completes the entries after the first n and removes the oldest ones.
func (t *Task) sign(n int, at store.Time, by string) {
	for i := n; i < len(t.logs); i++ {
		t.logs[i].At, t.logs[i].By = at, by
	}
	t.logs = t.logs[max(0, len(t.logs)-maxLogs):]
}

// logsMember begins the last member of the metadata.
var logsMember = []byte(`,"logs":[`)

// joinMetadata sets the metadata from those of the client and the logs.
func (t *Task) joinMetadata() error {
	logs, err := json.Marshal(t.logs)
	if err != nil {
		return fmt.Errorf("logs of task %s: %w", t.ID, err)
	}
	t.Metadata = slices.Concat([]byte(strings.TrimSuffix(t.clientMetadata, "}")), logsMember, logs[1:], []byte("}"))
	return nil
}

// splitMetadata is the reverse of joinMetadata.
func (t *Task) splitMetadata() error {
	members := map[string]jsontext.Value{}
	err := json.Unmarshal(t.Metadata, &members)
	if err == nil {
		err = json.Unmarshal(members["logs"], &t.logs)
	}
	if err != nil {
		return fmt.Errorf("metadata of task %s: %w", t.ID, err)
	}
	delete(members, "logs")
	free, err := json.Marshal(members, json.Deterministic(true))
	t.clientMetadata = string(free)
	return err
}
