package seed

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"kontor/server/apierr"
	"kontor/server/endpoint"
)

// ScenarioList lists the scenarios.
type ScenarioList struct {
	Data []ScenarioInfo `json:"data"`
}

// ScenarioInfo describes a scenario.
type ScenarioInfo struct {
	Name    string          `json:"name" example:"kyc.approved"`
	Summary string          `json:"summary" example:"A customer submits documents, and an advisor verifies them."`
	Values  []ScenarioValue `json:"values" doc:"What set can change."`
}

// ScenarioValue is a value of a scenario.
type ScenarioValue struct {
	Name    string `json:"name" example:"customer.country"`
	Default string `json:"default" example:"CHE"`
}

func (s *Service) scenarios(ctx context.Context, _ endpoint.None) (ScenarioList, error) {
	return s.List(endpoint.Language(ctx))
}

// List returns the scenarios in a language.
func (s *Service) List(language string) (ScenarioList, error) {
	found := ScenarioList{Data: []ScenarioInfo{}}
	for _, name := range Scenarios() {
		file, err := Scenario(name)
		if err != nil {
			return found, err
		}
		info := ScenarioInfo{Name: name, Summary: s.Texts.Text(language, "scenario."+name, nil), Values: []ScenarioValue{}}
		for _, value := range slices.Sorted(maps.Keys(file.Values)) {
			text, _ := scalarText(file.Values[value])
			info.Values = append(info.Values, ScenarioValue{value, text})
		}
		found.Data = append(found.Data, info)
	}
	return found, nil
}

// TriggerInput names a scenario.
type TriggerInput struct {
	Scenario string            `json:"scenario" required:"true" example:"kyc.approved"`
	Set      map[string]string `json:"set" required:"false" nullable:"false" maxProperties:"100" doc:"Other values than those of the scenario, by their names."`

	file *File
}

// Validate checks the names.
func (in *TriggerInput) Validate(v *apierr.Fields) {
	if in.Scenario == "" {
		v.Add("scenario", "invalid.required")
		return
	}
	if !slices.Contains(Scenarios(), in.Scenario) {
		v.Add("scenario", "invalid.scenario")
		return
	}
	file, err := Scenario(in.Scenario)
	if err != nil {
		v.Add("scenario", "invalid.scenario")
		return
	}
	for _, name := range slices.Sorted(maps.Keys(in.Set)) {
		if _, known := file.Values[name]; !known {
			v.Add("set", "invalid.scenario_value", apierr.Args{"Name": name, "Known": strings.Join(slices.Sorted(maps.Keys(file.Values)), ", ")})
			return
		}
		file.Values[name] = in.Set[name]
	}
	in.file = file
}

// Triggered is what a scenario has caused.
type Triggered struct {
	Scenario string `json:"scenario" example:"kyc.approved"`
	Played
	Events   []CausedEvent `json:"events" doc:"The events of the change feed that followed, in their order."`
	Webhooks []CausedCall  `json:"webhooks" doc:"The calls of webhooks that followed, as far as they were tried within five seconds."`
}

// CausedEvent is an event of the change feed.
type CausedEvent struct {
	ID      string `json:"id"`
	Type    string `json:"type" example:"customers.updated"`
	RecType string `json:"rec_type" example:"customers"`
	RecID   string `json:"rec_id" format:"-"`
	Action  string `json:"action" example:"customers.kyc_decide"`
}

// CausedCall is a delivery of a webhook.
type CausedCall struct {
	WebhookID string `json:"webhook_id"`
	EventID   string `json:"event_id"`
	Type      string `json:"type" example:"customers.updated"`
	Status    string `json:"status" example:"delivered"`
	Response  *int   `json:"response_status" example:"200"`
}

// Trigger plays a scenario as the caller of the context.
func (s *Service) Trigger(ctx context.Context, in TriggerInput) (Triggered, error) {
	ctx, cancel := context.WithTimeout(ctx, maxTime)
	defer cancel()
	if !s.Busy.TryLock() {
		return Triggered{}, apierr.SandboxBusy
	}
	defer s.Busy.Unlock()
	done := Triggered{Scenario: in.Scenario, Events: []CausedEvent{}, Webhooks: []CausedCall{}}
	cursor := ""
	before := func(d *sender) (err error) {
		cursor, err = d.latest(ctx)
		return err
	}
	after := func(d *sender) (err error) {
		if done.Events, err = d.eventsAfter(ctx, cursor); err != nil {
			return err
		}
		done.Webhooks, err = d.calls(ctx, done.Events)
		return err
	}
	played, err := s.play(ctx, in.file, before, after)
	done.Played = played
	return done, err
}

// get reads an answer as the caller.
func (d *sender) get(ctx context.Context, path string, query url.Values, into any) error {
	return d.getAs(ctx, d.caller, path, query, into)
}

// getAs reads an answer as a user.
func (d *sender) getAs(ctx context.Context, userID, path string, query url.Values, into any) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://kontor.localhost"+path+"?"+query.Encode(), nil)
	if err != nil {
		return err
	}
	response, err := d.Send(ctx, userID, request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	switch response.StatusCode {
	case http.StatusOK:
	case http.StatusForbidden:
		return apierr.NoAccess
	default:
		return fmt.Errorf("read %s: status %d", path, response.StatusCode)
	}
	decoder := json.NewDecoder(io.LimitReader(response.Body, maxKept))
	decoder.UseNumber() // as it is in the answer
	if err := decoder.Decode(into); err != nil {
		return fmt.Errorf("read %s: %w", path, err)
	}
	return nil
}

const eventsPath = "/v1/events"

// latest returns the cursor of the newest event.
func (d *sender) latest(ctx context.Context) (string, error) {
	var page struct{ Next string }
	err := d.get(ctx, eventsPath, url.Values{"after": {"latest"}, "limit": {"1"}}, &page)
	return page.Next, err
}

// maxEvents is how many events an answer lists.
const maxEvents = 1000

func (d *sender) eventsAfter(ctx context.Context, cursor string) ([]CausedEvent, error) {
	var page struct {
		Data    []CausedEvent
		Next    string
		HasMore bool `json:"has_more"`
	}
	found := []CausedEvent{}
	for page.HasMore = true; page.HasMore && len(found) < maxEvents; cursor = page.Next {
		page.Data, page.HasMore = nil, false
		if err := d.get(ctx, eventsPath, url.Values{"after": {cursor}, "limit": {"100"}}, &page); err != nil {
			return found, err
		}
		found = append(found, page.Data...)
	}
	return found, nil
}

// callTime is how long a scenario waits for the calls of webhooks.
const callTime = 5 * time.Second

// calls returns the calls of webhooks for events.
func (d *sender) calls(ctx context.Context, events []CausedEvent) ([]CausedCall, error) {
	found := []CausedCall{}
	var hooks struct{ Data []struct{ ID string } }
	if err := d.get(ctx, "/v1/webhooks", url.Values{"limit": {"100"}}, &hooks); err != nil || len(hooks.Data) == 0 {
		return found, err
	}
	waiting, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	_ = d.Settle(waiting) // what is not tried by then is listed as it is
	caused := make(map[string]bool, len(events))
	for _, e := range events {
		caused[e.ID] = true
	}
	for _, hook := range hooks.Data {
		var page struct{ Data []CausedCall }
		if err := d.get(ctx, "/v1/webhooks/"+hook.ID+"/deliveries", url.Values{"limit": {"100"}, "sort": {"-created_at"}}, &page); err != nil {
			return found, err
		}
		for _, call := range slices.Backward(page.Data) {
			if caused[call.EventID] {
				found = append(found, call)
			}
		}
	}
	return found, nil
}
