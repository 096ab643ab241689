package webhooks

import (
	"context"
	"net/http"

	"kontor/modules/kit/list"
	"kontor/server/access"
	"kontor/server/apierr"
	"kontor/server/endpoint"
	"kontor/server/ratelimit"
)

// Endpoints returns the rows of the module. No built-in role but Administrator has grants on them. Only people who have shown a
// second factor create and change webhooks: they decide where data goes. Service accounts can see their own, test and replay.
func (s *Service) Endpoints() []endpoint.Endpoint {
	const one = "/v1/webhooks/{id}"
	found := []apierr.Kind{apierr.WebhookNotFound}
	changes := []apierr.Kind{apierr.WebhookNotFound, apierr.GrantNotHeld, apierr.PreconditionFailed}
	rows := []endpoint.Endpoint{
		{Name: "webhooks.create", Method: http.MethodPost, Path: "/v1/webhooks", Subject: access.NoSubject("the rights of the account are compared"), Access: access.On(access.Webhooks, access.Create), Assurance: endpoint.SecondFactor,
			Summary: "Create a webhook.", Doc: endpoint.Doc{Description: callDescription}, Faults: []apierr.Kind{apierr.GrantNotHeld, apierr.TooManyWebhooks},
			Handle: endpoint.JSON(http.StatusCreated, s.Create)},
		{Name: "webhooks.list", Method: http.MethodGet, Path: "/v1/webhooks", Access: access.On(access.Webhooks, access.Read),
			Summary: "List webhooks.", Compression: endpoint.Uncompressed, // addresses of receivers may contain secrets
			Doc: endpoint.Doc{Search: webhookList.Search()}, Handle: endpoint.JSON(http.StatusOK, s.list)},
		{Name: "webhooks.get", Method: http.MethodGet, Path: one, Access: access.On(access.Webhooks, access.Read),
			Summary: "Get a webhook.", Compression: endpoint.Uncompressed, Faults: found, Handle: endpoint.JSON(http.StatusOK, s.get)},
		{Name: "webhooks.update", Method: http.MethodPatch, Path: one, Subject: access.NoSubject("the rights of the account are compared"), Access: access.On(access.Webhooks, access.Update), Assurance: endpoint.SecondFactor,
			Summary: "Change, pause or resume a webhook.", Faults: changes, Handle: endpoint.JSON(http.StatusOK, s.Update)},
		{Name: "webhooks.delete", Method: http.MethodDelete, Path: one, Subject: access.NoSubject("a webhook is no right"), Access: access.On(access.Webhooks, access.Delete), Assurance: endpoint.SecondFactor,
			Summary: "Delete a webhook and its deliveries.", Faults: []apierr.Kind{apierr.WebhookNotFound, apierr.PreconditionFailed},
			Handle: endpoint.JSON(http.StatusOK, s.delete)},
		{Name: "webhooks.rotate_secret", Method: http.MethodPost, Path: one + "/secret", Subject: access.NoSubject("the rights of the account are compared"), Access: access.On(access.Webhooks, access.Update), Assurance: endpoint.SecondFactor,
			Summary: "Replace the secret of a webhook.", Faults: changes, Handle: endpoint.JSON(http.StatusOK, s.Rotate)},
		{Name: "webhooks.test", Method: http.MethodPost, Path: one + "/test", Subject: access.NoSubject("it sends to the same address what the account may read"), Access: access.On(access.Webhooks, access.Update),
			Summary: "Send a test event to a webhook.", Faults: found, Handle: endpoint.JSON(http.StatusCreated, s.Test)},
		{Name: "webhooks.replay", Method: http.MethodPost, Path: one + "/replay", Subject: access.NoSubject("it sends to the same address what the account may read"), Access: access.On(access.Webhooks, access.Update),
			Summary: "Send the events since a time again.", Faults: found, Handle: endpoint.JSON(http.StatusOK, s.replay)},
		{Name: "webhooks.deliveries", Method: http.MethodGet, Path: one + "/deliveries", Access: access.On(access.Webhooks, access.Read),
			Summary: "List the deliveries of a webhook.", Doc: endpoint.Doc{Search: deliveryList.Search()}, Faults: found,
			Handle: endpoint.JSON(http.StatusOK, s.deliveries)},
		{Name: "webhooks.replay_delivery", Method: http.MethodPost, Path: one + "/deliveries/{delivery_id}/replay", Subject: access.NoSubject("it sends to the same address what the account may read"), Access: access.On(access.Webhooks, access.Update),
			Summary: "Send a delivery again.", Faults: []apierr.Kind{apierr.WebhookNotFound, apierr.WebhookDelivery, apierr.WebhookNotFinished},
			Handle: endpoint.JSON(http.StatusOK, s.ReplayOne)},
	}
	for i := range rows {
		rows[i].Tag, rows[i].Limit = "Webhooks", ratelimit.Private
	}
	return rows
}

const callDescription = "Each event is a POST with the JSON object `type`, `timestamp` and `data`, signed as [Standard Webhooks](https://www.standardwebhooks.com) " +
	"describes: `webhook-id` is the id of the event and the same for every attempt, `webhook-timestamp` the time of the attempt in seconds, and " +
	"`webhook-signature` a list of `v1` signatures, two while a secret is being replaced.\n\n" +
	"An answer of 2xx within the time limit accepts the event. `410` disables the webhook; every other answer, a redirect too, is a failure: the call is " +
	"repeated ten times over three days, not before `Retry-After`. A receiver must expect repetitions. The events of one record come in their order.\n\n" +
	"The account of the webhook decides which events are sent: those of records that it may read at that moment. It needs the grant on `GET /v1/events`."

type listInput struct {
	Query list.Params `query:"*"`
}

func (s *Service) list(ctx context.Context, in listInput) (list.Page[Webhook], error) {
	return webhookList.Page(ctx, s.db, in.Query, table.Visible(access.From(ctx)))
}

type oneInput struct {
	ID string `path:"id"`
}

func (s *Service) get(ctx context.Context, in oneInput) (Webhook, error) {
	return table.Get(ctx, s.db, in.ID, access.Read)
}

func (s *Service) delete(ctx context.Context, in oneInput) (endpoint.Message, error) {
	return endpoint.Confirm(ctx, s.Texts, "webhooks.deleted"), s.Delete(ctx, in.ID)
}

func (s *Service) replay(ctx context.Context, in ReplayInput) (endpoint.Message, error) {
	return endpoint.Confirm(ctx, s.Texts, "webhooks.replayed"), s.Replay(ctx, in)
}
