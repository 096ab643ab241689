package notifications

import (
	"kontor/modules/kit/event"
	"kontor/server/access"
	"kontor/store"
)

// kind says how an event reaches people. Every event stands in the recipient's inbox and goes to his streams; its texts
// have the keys notification.<event>.<channel>.<part> in the locale files.
type kind struct {
	system   bool     // told again when it never reached a stream of the recipient
	channels []string // beside the inbox

	everywhere bool // goes to all addresses of the recipient, not only to the first for each channel
}

// kinds lists the events that are raised. One-time codes are not among them: they go out by [Service.PrepareOTP] alone.
var kinds = map[event.Kind]kind{
	event.MessageReceived:       {},
	event.CustomerCreated:       {},
	event.CustomerStatusChanged: {system: true, channels: []string{Email}},
	event.KYCDocumentExpiring:   {system: true, channels: []string{Email}},
	event.TaskAssigned:          {channels: []string{Email}},
	event.TaskStatusChanged:     {},
	event.PasswordChanged:       {system: true, channels: []string{Email, SMS}, everywhere: true},
	event.CredentialAdded:       {system: true, channels: []string{Email, SMS}, everywhere: true},
	event.CredentialRemoved:     {system: true, channels: []string{Email, SMS}, everywhere: true},
	event.NewDeviceLogin:        {system: true, channels: []string{Email}},
}

// linkPath is the screen of the console that shows what a notification is about, or nothing.
func linkPath(recType, recID, customerID string) string {
	known := recID != store.NilID && recID != ""
	switch {
	case recType == access.Customers.Name && known:
		return "/customers/" + recID
	case recType == access.Tasks.Name && known && customerID != store.NilID:
		return "/customers/" + customerID + "/tasks/" + recID
	case recType == access.Chats.Name && known:
		return "/chats/" + recID
	case recType == access.Users.Name || recType == access.Sessions.Name || recType == access.Credentials.Name:
		return "/profile"
	default:
		return ""
	}
}
