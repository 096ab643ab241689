package notifications

import (
	"context"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"kontor/modules/kit/list"
	"kontor/modules/kit/types"
	"kontor/modules/kit/validate"
	"kontor/server/apierr"
	"kontor/server/endpoint"
)

func requestLanguage(ctx context.Context) string { return endpoint.Language(ctx) }

// ListInput holds the parameters of the list. CustomerID only selects the language.
type ListInput struct {
	Query      list.Params `query:"*"`
	CustomerID string      `query:"customer_id"`

	customerID string
}

// Validate checks the customer's id.
func (in *ListInput) Validate(v *apierr.Fields) {
	if in.CustomerID == "" {
		return
	}
	in.customerID = validate.Parsed(v, "customer_id", in.CustomerID, types.ParseID)
}

// AllInput holds the search of the notifications to mark as read. The other parameters of lists do not matter.
type AllInput struct {
	Query list.Params `query:"*"`
}

// OneInput identifies a notification, or for deletion the parent row of its event.
type OneInput struct {
	ID string `path:"notification_id"`
}

// ReadInput marks a notification as read if the member read has any value but null.
type ReadInput struct {
	ID   string                            `path:"notification_id"`
	Read endpoint.Optional[jsontext.Value] `json:"read" type:"any" example:"true" doc:"Any value but null marks the notification as read."`
}

// RecordInput identifies the record whose notifications are to be marked as read.
type RecordInput struct {
	RecType string `json:"rec_type"`
	RecID   string `json:"rec_id"`
}

// Validate checks type and id.
func (in *RecordInput) Validate(v *apierr.Fields) {
	in.RecType = validate.Required(v, "rec_type", in.RecType, maxRecType)
	if in.RecID == "" {
		v.Add("rec_id", "invalid.required")
	}
	in.RecID = validate.Parsed(v, "rec_id", in.RecID, types.ParseID)
}

const maxRecType = 100

// TriggerInput is the data of a test notification. It is not validated: values of the wrong type count as missing.
type TriggerInput struct {
	Type       lenientText `json:"type" example:"customers" doc:"Name of a record type; used unless rec_type and rec_id are both given."`
	Event      lenientText `json:"event" example:"customer_status_changed"`
	TitleKey   lenientText `json:"title_key" example:"notice.customer_status_changed.title"`
	Content    lenientText `json:"content"`
	CustomerID lenientID   `json:"customer_id"`
	UserIDs    lenientIDs  `json:"user_ids"`
	RecType    lenientText `json:"rec_type"`
	RecID      lenientID   `json:"rec_id"`
}

// lenientText is a text. Any other JSON value is read as an empty text.
type lenientText string

// UnmarshalJSON accepts any value.
func (l *lenientText) UnmarshalJSON(data []byte) error {
	var text string
	_ = json.Unmarshal(data, &text) // another value leaves it empty
	*l = lenientText(text)
	return nil
}

// lenientID is a UUID. Any other JSON value is read as an empty text.
type lenientID string

// UnmarshalJSON accepts any value.
func (l *lenientID) UnmarshalJSON(data []byte) error {
	var text lenientText
	_ = text.UnmarshalJSON(data) // never fails
	if id, err := types.ParseID(string(text)); err == nil {
		*l = lenientID(id)
	}
	return nil
}

// lenientIDs are the UUIDs of an array. Its other elements are ignored.
type lenientIDs []string

// UnmarshalJSON accepts any value.
func (l *lenientIDs) UnmarshalJSON(data []byte) error {
	var all []lenientID
	_ = json.Unmarshal(data, &all) // another value leaves it empty
	for _, id := range all {
		if id != "" {
			*l = append(*l, string(id))
		}
	}
	return nil
}
