package notifications

import (
	"kontor/modules/notice"
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
var kinds = map[notice.Event]kind{
	notice.MessageReceived:       {},
	notice.CustomerCreated:       {},
	notice.CustomerStatusChanged: {system: true, channels: []string{Email}},
	notice.KYCDocumentExpiring:   {system: true, channels: []string{Email}},
	notice.TaskAssigned:          {channels: []string{Email}},
	notice.TaskStatusChanged:     {},
	notice.PasswordChanged:       {system: true, channels: []string{Email, SMS}, everywhere: true},
	notice.CredentialAdded:       {system: true, channels: []string{Email, SMS}, everywhere: true},
	notice.CredentialRemoved:     {system: true, channels: []string{Email, SMS}, everywhere: true},
	notice.NewDeviceLogin:        {system: true, channels: []string{Email}},
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
