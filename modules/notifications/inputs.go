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

// ListInput asks for a page. CustomerID only chooses the language.
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

// OneInput names a notification; to delete one, its source.
type OneInput struct {
	ID string `path:"notification_id"`
}

// ReadInput marks a notification read, if read stands in the body with any value but null.
type ReadInput struct {
	ID   string                            `path:"notification_id"`
	Read endpoint.Optional[jsontext.Value] `json:"read" type:"any" example:"true" doc:"Anything but null marks the notification read."`
}

// RecordInput names the record whose notifications are to be marked read.
type RecordInput struct {
	RecType string `json:"rec_type"`
	RecID   string `json:"rec_id"`
}

// Validate checks both parts of the name.
func (in *RecordInput) Validate(v *apierr.Fields) {
	in.RecType = validate.Required(v, "rec_type", in.RecType, maxRecType)
	if in.RecID == "" {
		v.Add("rec_id", "invalid.required")
	}
	in.RecID = validate.Parsed(v, "rec_id", in.RecID, types.ParseID)
}

const maxRecType = 100

// TriggerInput makes a test notification. Nothing in it is validated: what does not fit counts as not given.
type TriggerInput struct {
	Type       loose    `json:"type" example:"customers" doc:"Name of a record type, used when rec_type and rec_id are not both given."` // name of a record type
	Event      loose    `json:"event" example:"customer_status_changed"`
	TitleKey   loose    `json:"title_key" example:"notice.customer_status_changed.title"`
	Content    loose    `json:"content"`
	CustomerID looseID  `json:"customer_id"`
	UserIDs    looseIDs `json:"user_ids"`
	RecType    loose    `json:"rec_type"`
	RecID      looseID  `json:"rec_id"`
}

// loose is a text, or nothing where another thing was given.
type loose string

// UnmarshalJSON takes whatever there is.
func (l *loose) UnmarshalJSON(data []byte) error {
	var text string
	_ = json.Unmarshal(data, &text) // what is no text is none
	*l = loose(text)
	return nil
}

// looseID is an id, or nothing.
type looseID string

// UnmarshalJSON takes whatever there is.
func (l *looseID) UnmarshalJSON(data []byte) error {
	var text loose
	_ = text.UnmarshalJSON(data) // never fails
	if id, err := types.ParseID(string(text)); err == nil {
		*l = looseID(id)
	}
	return nil
}

// looseIDs are the ids among what was given.
type looseIDs []string

// UnmarshalJSON takes whatever there is.
func (l *looseIDs) UnmarshalJSON(data []byte) error {
	var all []looseID
	_ = json.Unmarshal(data, &all) // what is no array holds no ids
	for _, id := range all {
		if id != "" {
			*l = append(*l, string(id))
		}
	}
	return nil
}
