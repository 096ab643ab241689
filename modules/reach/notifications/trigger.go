package notifications

import (
	"context"

	"kontor/server/access"
	"kontor/store"
)

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
		table.Audit(ctx, tx, "notifications.trigger", answer.NotificationID, nil, nil)
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
