package notifications

import (
	"kontor/modules/kit/event"
	"kontor/server/access"
	"kontor/store"
)

// kind says how users are notified of an event. Every event has a notification in the list of each recipient and a frame
// on their streams. Its texts have the keys notification.<event>.<channel>.<part> in the locale files.
type kind struct {
	system   bool     // replayed on a stream without Last-Event-ID if it never reached a stream of the recipient
	channels []string // beside the list

	everywhere bool // sent to all addresses of the recipient, not only to the first of each channel

	// ownAccount: it is about the security of the recipient's account, and sent to them although they caused it. Users are not notified
	// of anything else that they did themselves.
	ownAccount bool

	titleKey, contentKey string // set by withKeys
}

// kinds lists the events. One-time codes are missing: only [Service.PrepareOTP] sends them.
var kinds = withKeys(map[event.Kind]kind{
	event.MessageReceived:       {},
	event.CustomerCreated:       {},
	event.CustomerStatusChanged: {system: true, channels: []string{Email}},
	event.CustomerNotice:        {channels: []string{Email}},
	event.KYCDocumentExpiring:   {system: true, channels: []string{Email}},
	event.KYCDecisionPending:    {},
	event.KYCDecisionClosed:     {},
	event.TaskAssigned:          {channels: []string{Email}},
	event.TaskStatusChanged:     {},
	event.TaskDue:               {channels: []string{Email}},
	event.PasswordChanged:       {system: true, channels: []string{Email, SMS}, everywhere: true, ownAccount: true},
	event.CredentialAdded:       {system: true, channels: []string{Email, SMS}, everywhere: true, ownAccount: true},
	event.CredentialRemoved:     {system: true, channels: []string{Email, SMS}, everywhere: true, ownAccount: true},
	event.FactorChanged:         {system: true, channels: []string{Email, SMS}, everywhere: true, ownAccount: true},
	event.ServiceTokenExpiring:  {system: true, channels: []string{Email}},
	event.AccessExpiring:        {system: true, channels: []string{Email}},
	event.WebhookPaused:         {system: true, channels: []string{Email}},
	event.WebhookDisabled:       {system: true, channels: []string{Email}},
	event.NewDeviceLogin:        {system: true, channels: []string{Email}, ownAccount: true},
})

// withKeys sets the keys of the texts.
func withKeys(kinds map[event.Kind]kind) map[event.Kind]kind {
	for name, k := range kinds {
		k.titleKey, k.contentKey = "notification."+string(name)+".title", "notification."+string(name)+".content"
		kinds[name] = k
	}
	return kinds
}

// linkPath returns the path of the console's screen for the record of a notification, or an empty text.
func linkPath(recType, recID, customerID string) string {
	known := recID != store.NilID && recID != ""
	switch {
	case recType == access.Customers.Name && known:
		return "/customers/" + recID
	case recType == access.Tasks.Name && known && customerID != store.NilID:
		return "/customers/" + customerID + "/tasks/" + recID
	case recType == access.Chats.Name && known:
		return "/chats/" + recID
	case recType == access.Services.Name && known:
		return "/admin/services/" + recID
	case recType == access.Webhooks.Name && known:
		return "/admin/webhooks/" + recID
	case recType == access.Users.Name || recType == access.Sessions.Name || recType == access.Credentials.Name:
		return "/profile"
	default:
		return ""
	}
}
