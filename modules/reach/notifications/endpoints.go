package notifications

import (
	"net/http"

	"kontor/server/access"
	"kontor/server/apierr"
	"kontor/server/endpoint"
	"kontor/server/ratelimit"
)

// Endpoints returns the rows of the module.
func (s *Service) Endpoints() []endpoint.Endpoint {
	all := []string{access.Advisor, access.Customer}
	rows := []endpoint.Endpoint{
		{Name: "notifications.list", Method: http.MethodGet, Path: "/v1/notifications", Roles: all,
			Access: access.On(access.Notifications, access.Read).WithoutGrant(), Summary: "List notifications.",
			Doc:    endpoint.Doc{Search: notificationList.Search()},
			Handle: endpoint.JSON(http.StatusOK, s.List)},
		{Name: "notifications.get", Method: http.MethodGet, Path: "/v1/notifications/{notification_id}", Roles: all,
			Access: access.On(access.Notifications, access.Read).WithoutGrant(), Summary: "Get a notification.",
			Faults: []apierr.Kind{apierr.NotificationNotFound}, Handle: endpoint.JSON(http.StatusOK, s.Get)},
		{Name: "notifications.mark_read", Method: http.MethodPatch, Path: "/v1/notifications/{notification_id}/read", Roles: all,
			Access: access.Own, Summary: "Mark a notification as read.",
			Faults: []apierr.Kind{apierr.PreconditionFailed}, Handle: endpoint.JSON(http.StatusOK, s.MarkRead)},
		{Name: "notifications.mark_record", Method: http.MethodPost, Path: "/v1/notifications/read", Roles: all,
			Access: access.Own, Summary: "Mark the notifications about a record as read.",
			Handle: endpoint.JSON(http.StatusOK, s.MarkRecord)},
		{Name: "notifications.mark_all", Method: http.MethodPost, Path: "/v1/notifications/read-all", Roles: all,
			Access: access.Own, Summary: "Mark all of the caller's notifications that match a search as read.",
			Doc:    endpoint.Doc{Search: notificationList.Search()},
			Handle: endpoint.JSON(http.StatusOK, s.MarkAll)},
		{Name: "notifications.unread_count", Method: http.MethodGet, Path: "/v1/notifications/unread-count", Roles: all,
			Access: access.Own, Summary: "Count unread notifications.",
			Handle: endpoint.JSON(http.StatusOK, s.CountUnread)},
		{Name: "notifications.delete", Method: http.MethodDelete, Path: "/v1/notifications/{notification_id}", Roles: all,
			Access: access.Own, Summary: "Hide one of the caller's notifications, or delete an event for all recipients.",
			Doc:    endpoint.Doc{Description: "The id of a notification hides it from its recipient. The id of an event, which only the trigger returns, takes the permission to delete notifications."},
			Faults: []apierr.Kind{apierr.DatabaseError}, Handle: endpoint.JSON(http.StatusOK, s.Delete)},
		{Name: "notifications.preferences", Method: http.MethodGet, Path: "/v1/notifications/preferences", Roles: all,
			Access: access.Own, Summary: "Get notification preferences (not implemented).",
			Handle: endpoint.JSON(http.StatusOK, s.Preferences)},
		{Name: "notifications.set_preferences", Method: http.MethodPut, Path: "/v1/notifications/preferences", Roles: all,
			Access: access.Own, Summary: "Set notification preferences (not implemented).",
			Handle: endpoint.JSON(http.StatusOK, s.Preferences)},
		{Name: "notifications.deliveries", Method: http.MethodGet, Path: "/v1/notifications/deliveries",
			Subject: access.NoSubject("secrets of recipients who hold more than the caller are masked"),
			Access:  access.On(access.Deliveries, access.ReadAll), Assurance: seesSecrets, Summary: "List e-mail and SMS deliveries.",
			Compression: endpoint.Uncompressed, // texts contain one-time codes
			Doc:         endpoint.Doc{Search: deliveryList.Search()}, Reports: endpoint.Event{Kind: endpoint.Reading, Action: "notifications.outbox_read"},
			Handle: endpoint.JSON(http.StatusOK, s.ListDeliveries)},
		{Name: "notifications.retry_delivery", Method: http.MethodPost, Path: "/v1/notifications/deliveries/{id}/retry",
			Subject: access.NoSubject("the message goes to the same recipient"),
			Access:  access.On(access.Deliveries, access.Update), Assurance: seesSecrets, Summary: "Retry a dead delivery.",
			Faults: []apierr.Kind{apierr.DeliveryNotFound, apierr.DeliveryNotDead}, Handle: endpoint.JSON(http.StatusOK, s.Retry)},
	}
	for _, method := range []string{http.MethodGet, http.MethodPost} {
		name := map[string]string{http.MethodGet: "notifications.stream", http.MethodPost: "notifications.stream_post"}[method]
		rows = append(rows, endpoint.Endpoint{Name: name, Method: method, Path: streamPath, Roles: all,
			Access: access.Own, Summary: "Open the notification stream.", Draining: drainingText,
			Faults: []apierr.Kind{apierr.TooManyStreams, apierr.AuthUnavailable},
			Doc: endpoint.Doc{Description: streamDescription, Headers: []string{"Last-Event-ID"}, Answers: []endpoint.Answer{
				{Status: http.StatusOK, Media: "text/event-stream", Says: "The stream; it stays open.", Example: streamExample, Frames: streamFrames},
			}},
			Handle: endpoint.Raw(nil, s.openStream)})
	}
	if !s.options.NoTrigger {
		rows = append(rows, endpoint.Endpoint{Name: "notifications.trigger", Method: http.MethodPost, Path: "/v1/notifications/trigger",
			Access: access.APIKey, Summary: "Send a test notification.", Handle: endpoint.JSON(http.StatusOK, s.Trigger)})
	}
	for i := range rows {
		rows[i].Tag, rows[i].Limit = "Notifications", ratelimit.Private
	}
	return rows
}
