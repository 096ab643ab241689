package notifications

import (
	"context"
	"time"

	"kontor/modules/kit/event"
	"kontor/modules/kit/hit"
	"kontor/modules/reach/deliveries"
	"kontor/server/access"
	"kontor/store"
)

// kind says how users are notified of an event. Every event has a notification in the list of each recipient and a frame
// on their streams. Its texts have the keys notification.<event>.<channel>.<part> in the locale files.
type kind struct {
	system   bool     // replayed on a stream without Last-Event-ID if it never reached a stream of the recipient
	channels []string // beside the list

	everywhere bool // sent to all addresses of the recipient, not only to the first of each channel

	// ownAccount: it is about the security of the recipient's account, or asks them to act, and is sent to them although they caused it.
	// Users are not notified of anything else that they did themselves.
	ownAccount bool

	titleKey, contentKey string // set by withKeys
}

// kinds lists the events. One-time codes are missing: only [Service.PrepareOTP] sends them.
var kinds = withKeys(map[event.Kind]kind{
	event.MessageReceived:       {},
	event.CustomerCreated:       {},
	event.CustomerStatusChanged: {system: true, channels: []string{deliveries.Email}},
	event.CustomerNotice:        {channels: []string{deliveries.Email}},
	event.KYCDocumentExpiring:   {system: true, channels: []string{deliveries.Email}},
	event.KYCDecisionPending:    {},
	event.KYCDecisionClosed:     {},
	event.ScreeningEscalated:    {system: true, channels: []string{deliveries.Email}},
	event.KYCCaseEscalated:      {channels: []string{deliveries.Email}, ownAccount: true},
	event.TaskAssigned:          {channels: []string{deliveries.Email}},
	event.TaskStatusChanged:     {},
	event.TaskDue:               {channels: []string{deliveries.Email}},
	event.PasswordChanged:       {system: true, channels: []string{deliveries.Email, deliveries.SMS}, everywhere: true, ownAccount: true},
	event.CredentialAdded:       {system: true, channels: []string{deliveries.Email, deliveries.SMS}, everywhere: true, ownAccount: true},
	event.CredentialRemoved:     {system: true, channels: []string{deliveries.Email, deliveries.SMS}, everywhere: true, ownAccount: true},
	event.FactorChanged:         {system: true, channels: []string{deliveries.Email, deliveries.SMS}, everywhere: true, ownAccount: true},
	event.ServiceTokenExpiring:  {system: true, channels: []string{deliveries.Email}},
	event.AccessExpiring:        {system: true, channels: []string{deliveries.Email}},
	event.WebhookPaused:         {system: true, channels: []string{deliveries.Email}},
	event.WebhookDisabled:       {system: true, channels: []string{deliveries.Email}},
	event.NewDeviceLogin:        {system: true, channels: []string{deliveries.Email}, ownAccount: true},
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
	case recType == hit.Type.Name && known:
		return "/screening/hits/" + recID
	case recType == access.Webhooks.Name && known:
		return "/admin/webhooks/" + recID
	case recType == access.Users.Name || recType == access.Sessions.Name || recType == access.Credentials.Name:
		return "/profile"
	default:
		return ""
	}
}

// SignedIn notifies a user of a sign-in from a new device, in the transaction of the sign-in.
func (s *Service) SignedIn(ctx context.Context, tx *store.Tx, userID, _ string, isNew bool) error {
	if !isNew {
		return nil
	}
	return s.notifyOfAccount(ctx, tx, event.NewDeviceLogin, userID, map[string]any{"Time": tx.Now().Std().Format(time.RFC3339)})
}

// PasswordChanged notifies a user that their password was changed, in the transaction of the change.
func (s *Service) PasswordChanged(ctx context.Context, tx *store.Tx, userID string) error {
	return s.notifyOfAccount(ctx, tx, event.PasswordChanged, userID, nil)
}

// CredentialAdded notifies a user at all older addresses that a credential was added. value hints at it, undo is the path of the link
// that removes it. Call it before the credential is validated, so that only the others get the message.
func (s *Service) CredentialAdded(ctx context.Context, tx *store.Tx, userID, value, undo string) error {
	e := accountEvent(event.CredentialAdded, userID, map[string]any{"Value": value})
	e.Undo = undo
	return s.Notify(ctx, tx, e)
}

// CredentialRemoved notifies a user at all validated addresses that one of them is deleted. value hints at it, undo is the path of the
// link that restores it; empty: none. Call it before the deletion, so that the deleted address gets the message, too.
func (s *Service) CredentialRemoved(ctx context.Context, tx *store.Tx, userID, value, undo string) error {
	e := accountEvent(event.CredentialRemoved, userID, map[string]any{"Value": value})
	e.Undo = undo
	return s.Notify(ctx, tx, e)
}

func (s *Service) notifyOfAccount(ctx context.Context, tx *store.Tx, kind event.Kind, userID string, args map[string]any) error {
	return s.Notify(ctx, tx, accountEvent(kind, userID, args))
}

func accountEvent(kind event.Kind, userID string, args map[string]any) event.Event {
	return event.Event{Kind: kind, Type: access.Users, RecordID: userID, Recipients: []string{userID}, Args: args}
}

// TriggerResult is the answer of the trigger. Without recipients it only has a message.
type TriggerResult struct {
	Message        string `json:"message" example:"Notification queued"`
	NotificationID string `json:"notification_id,omitzero" doc:"Of the event; DELETE /v1/notifications/{notification_id} takes it."`
	Recipients     int    `json:"recipients,omitzero" doc:"How many notifications were created."`
}

// Fixed answers of the trigger, in English whatever the language of the request.
const (
	messageTriggered = "Notification queued"
	messageNobody    = "No connected users to notify"
)

// testMetadata marks test notifications. Only the trigger writes it.
const testMetadata = `{"test":true}`

// Trigger sends a test notification to the given users and to all users with an open stream. It is marked as a test and has
// no deliveries.
func (s *Service) Trigger(ctx context.Context, in TriggerInput) (TriggerResult, error) {
	connected, err := s.counts.usersOfAllNodes(ctx)
	if err != nil {
		return TriggerResult{}, err
	}
	recipients := unique(append([]string(in.UserIDs), connected...))
	if len(recipients) == 0 {
		return TriggerResult{Message: messageNobody}, nil
	}
	parent := parentEvent{
		event: string(in.Event), customerID: idOrNil(string(in.CustomerID)), titleKey: string(in.TitleKey), content: string(in.Content),
		args: map[string]any{"test": true},
	}
	parent.recType, parent.recID = in.record()
	parent.rendered = s.renderMessages(ctx, parent, recipients)
	answer := TriggerResult{Message: messageTriggered}
	err = s.db.InTx(ctx, func(tx *store.Tx) error {
		var err error
		if answer.NotificationID, answer.Recipients, err = s.store(ctx, tx, parent, recipients); err != nil {
			return err
		}
		table.Audit(ctx, tx, "notifications.trigger", auditedEvent(answer.NotificationID), nil, nil)
		return nil
	})
	return answer, err
}

// record returns what the test notification refers to: the record if its type and id are given, or else the record type.
func (in TriggerInput) record() (recType, recID string) {
	if in.RecType != "" && in.RecID != "" {
		return string(in.RecType), string(in.RecID)
	}
	recType = string(in.Type)
	if recType == "" {
		recType = string(in.RecType)
	}
	t, known := access.LookupType(string(in.Type))
	if !known {
		return recType, store.NilID
	}
	return recType, t.ID
}
