package webhooks

import (
	"fmt"
	"slices"
	"strings"

	"kontor/modules/kit/outbound"
	"kontor/modules/kit/validate"
	"kontor/server/apierr"
	"kontor/server/endpoint"
	"kontor/store"
)

const (
	maxDescription = 200
	maxTypes       = 100
	// maxOverlap is the longest time, in hours, for which the secret before still signs.
	maxOverlap     = 168
	defaultOverlap = 24
)

// CreateInput describes a new webhook.
type CreateInput struct {
	AccountID     string   `json:"account_id" required:"false" doc:"The account whose rights decide which events are sent: the caller, or a service account as which the caller may act. Without it: the caller."`
	URL           string   `json:"url" maxLength:"2000" example:"https://hooks.example/kontor" doc:"An https:// address on the internet, or one in webhooks.allowed_networks."`
	Description   string   `json:"description" required:"false" maxLength:"200" example:"Back office"`
	Types         []string `json:"types" required:"false" maxItems:"100" example:"customers.*" doc:"Types of events, or patterns such as customers.*; without it: all."`
	IncludeRecord bool     `json:"include_record" required:"false" doc:"Send the record with each event."`
}

// Validate checks what does not depend on the settings.
func (in *CreateInput) Validate(v *apierr.Fields) {
	in.URL = strings.TrimSpace(in.URL)
	checkURL(v, in.URL)
	in.Description = validate.Text(v, "description", in.Description, maxDescription)
	checkNumber(v, in.Types)
}

func checkURL(v *apierr.Fields, address string) {
	if address == "" {
		v.Add("url", "invalid.required")
	} else if _, err := outbound.Parse(address); err != nil {
		v.Add("url", "invalid."+err.Error())
	}
}

func checkNumber(v *apierr.Fields, types []string) {
	if len(types) > maxTypes {
		v.Add("types", "invalid.max_items", apierr.Args{"Max": maxTypes})
	}
}

// UpdateInput changes a webhook. Missing members stay as they are.
type UpdateInput struct {
	ID            string                      `path:"id"`
	URL           *string                     `json:"url" maxLength:"2000" example:"https://hooks.example/kontor"`
	Description   *string                     `json:"description" maxLength:"200"`
	Types         endpoint.Optional[[]string] `json:"types" maxItems:"100" nullable:"false" example:"customers.*" doc:"Empty for all."`
	IncludeRecord *bool                       `json:"include_record"`
	Status        *string                     `json:"status" enum:"active,paused" doc:"active also resumes a webhook that Kontor has paused or disabled."`
}

// Validate checks the given members.
func (in *UpdateInput) Validate(v *apierr.Fields) {
	if in.URL != nil {
		*in.URL = strings.TrimSpace(*in.URL)
		checkURL(v, *in.URL)
	}
	if in.Description != nil {
		*in.Description = validate.Text(v, "description", *in.Description, maxDescription)
	}
	if in.Status != nil {
		validate.OneOf(v, "status", *in.Status, active, paused)
	}
	checkNumber(v, in.Types.Value)
}

// RotateInput replaces a secret.
type RotateInput struct {
	ID      string `path:"id"`
	Overlap *int   `json:"overlap_hours" required:"false" minimum:"0" maximum:"168" default:"24" doc:"For how long calls are also signed with the secret before; 0 if it has leaked."`
}

// Validate checks the overlap.
func (in *RotateInput) Validate(v *apierr.Fields) {
	if in.Overlap == nil {
		in.Overlap = new(int)
		*in.Overlap = defaultOverlap
	} else if *in.Overlap < 0 || *in.Overlap > maxOverlap {
		v.Add("overlap_hours", "invalid.range", apierr.Args{"Min": 0, "Max": maxOverlap})
	}
}

// ReplayInput sends events again.
type ReplayInput struct {
	ID    string     `path:"id"`
	Since store.Time `json:"since" doc:"The events since then are sent again, under the same ids, if the account may still read their records."`
}

// Validate checks that there is a time.
func (in *ReplayInput) Validate(v *apierr.Fields) {
	if in.Since <= 0 && !v.Has("since") {
		v.Add("since", "invalid.required")
	}
}

// checkSettings checks what depends on the settings: forbidden addresses, and types of events.
func (s *Service) checkSettings(address *string, types []string) error {
	var problems apierr.Fields
	if address != nil {
		if err := s.client.CheckURL(*address); err != nil {
			problems.Add("url", "invalid."+err.Error())
		}
	}
	for i, pattern := range types {
		if !s.feed.ValidPattern(pattern) {
			problems.Add(fmt.Sprintf("types.%d", i), "invalid.event_type", apierr.Args{"Type": pattern})
		}
	}
	return problems.Err()
}

// storedTypes returns the stored form of types: sorted, without repetitions.
func storedTypes(types []string) string {
	return strings.Join(slices.Compact(slices.Sorted(slices.Values(types))), ",")
}
