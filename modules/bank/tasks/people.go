package tasks

import (
	"bytes"
)

// EachUser calls add with the creator of the task, its assignees, and the users whom its log names. Lists of tasks are long
// and the data are stored as they are shown, so it searches the JSON instead of decoding it.
func (t Task) EachUser(add func(id string)) {
	add(t.CreatedBy)
	eachText(t.Assignees, userMember, add)
	logs := t.storedLogs()
	eachText(logs, authorMember, add)
	eachText(logs, userMember, add)
}

// EachUser calls add with the assigned user.
func (a Assignee) EachUser(add func(id string)) { add(a.UserID) }

// How the members that name users begin. They cannot occur within a text: its quotation marks are escaped.
var (
	userMember   = []byte(`"user_id":"`)
	authorMember = []byte(`"by":"`)
)

// storedLogs returns the JSON of the logs. They are the last member of the metadata; all other members belong to clients
// and must not name anybody.
func (t Task) storedLogs() []byte {
	at := bytes.LastIndex(t.Metadata, logsMember)
	if at < 0 {
		return nil
	}
	return t.Metadata[at:]
}

// eachText calls f with the value of each member of JSON that begins with prefix. The values are ids, which need no
// decoding.
func eachText(text, prefix []byte, f func(value string)) {
	for {
		_, rest, found := bytes.Cut(text, prefix)
		if !found {
			return
		}
		value, after, _ := bytes.Cut(rest, []byte{'"'})
		f(string(value))
		text = after
	}
}
