package notifications

import (
	"net/http"

	"kontor/modules/list"
	"kontor/server/access"
	"kontor/server/endpoint"
	"kontor/server/limit"
)

const tag = "Notifications"

// Endpoints are the operations on deliveries.
func (s *Service) Endpoints() []endpoint.Endpoint {
	return []endpoint.Endpoint{
		{Name: "notifications.deliveries", Method: http.MethodGet, Path: "/v1/notifications/deliveries",
			Access: access.On(access.Deliveries, access.ReadAll), Limit: limit.Private, Tag: tag,
			Summary: "List what was sent by e-mail and SMS, or is waiting to be.",
			Handle:  endpoint.JSON(http.StatusOK, s.listDeliveries)},
	}
}

type deliveriesInput struct {
	Query list.Params `query:"*"`
}
