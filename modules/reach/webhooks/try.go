package webhooks

import (
	"context"
	"net/http"
	"strconv"
	"strings"
	"time"

	"kontor/modules/kit/change"
	"kontor/modules/kit/records"
	"kontor/server/access"
	"kontor/server/apierr"
	"kontor/store"
)

const (
	// tryTime is the longest time of a test call, whose caller waits for the outcome.
	tryTime = 5 * time.Second
	// triesPerMinute is the number of test calls of a user to addresses that are not registered.
	triesPerMinute = 10
)

// TryInput names an address to test.
type TryInput struct {
	URL string `json:"url" maxLength:"2000" example:"https://hooks.example/kontor" doc:"An https:// address on the internet, or one in webhooks.allowed_networks."`
}

// Validate checks what does not depend on the settings.
func (in *TryInput) Validate(v *apierr.Fields) {
	in.URL = strings.TrimSpace(in.URL)
	checkURL(v, in.URL)
}

// Tried is the outcome of a test call.
type Tried struct {
	Delivered      bool   `json:"delivered" doc:"Whether the receiver has answered 2xx in time."`
	ResponseStatus *int   `json:"response_status" example:"204" doc:"null without an answer."`
	Error          string `json:"error" doc:"Why the call has failed; empty if it has not."`
	ErrorCode      string `json:"error_code" enum:"answer,redirect,forbidden,unencrypted,unknown_host,invalid_address,certificate,timeout,refused,closed,unreachable,server,other," doc:"The same for programs."`
	DurationMS     int64  `json:"duration_ms" example:"120"`
}

// Try sends an event of the type webhooks.test to an address that is not registered yet. Its secret is not kept.
// It returns apierr.InvalidInput and apierr.RateLimited.
func (s *Service) Try(ctx context.Context, in TryInput) (Tried, error) {
	if err := s.checkSettings(&in.URL, nil); err != nil {
		return Tried{}, err
	}
	if verdict := s.tries.Allow([]byte(access.From(ctx).UserID), triesPerMinute); !verdict.Allowed {
		return Tried{}, apierr.RateLimited.RetryAfter(verdict.RetryAfter)
	}
	now := s.db.Now()
	e := change.Event{ID: store.NewID(), Type: testType, Timestamp: now, Action: testType, Actor: records.Actor(ctx)}
	body, err := e.Payload()
	if err != nil {
		return Tried{}, err
	}
	result := s.call(ctx, in.URL, s.header(e.ID, int64(now)/1000, body, newSecret()), body)
	err = s.db.InTx(ctx, func(tx *store.Tx) error {
		tx.Audit(store.AuditEntry{Actor: records.Actor(ctx), Action: testType, RecType: table.Type.Name})
		tx.Respond(result)
		return nil
	})
	return result, err
}

// call sends a test call and returns its outcome.
func (s *Service) call(ctx context.Context, address string, header http.Header, body []byte) Tried {
	ctx, cancel := context.WithTimeout(ctx, min(tryTime, s.Timeout))
	defer cancel()
	began := s.db.Now()
	answer, err := s.client.Post(ctx, address, header, body)
	result := Tried{DurationMS: int64(s.db.Now() - began)}
	if err == nil {
		result.ResponseStatus, err = &answer.Status, checkStatus(answer.Status)
	}
	if result.Delivered = err == nil; err != nil {
		result.Error, result.ErrorCode = err.Error(), errorCode(err.Error())
	}
	return result
}

// header returns the header of a call.
func (s *Service) header(eventID string, seconds int64, body []byte, secrets ...[]byte) http.Header {
	return http.Header{
		"Content-Type": {"application/json"}, "User-Agent": {s.Product},
		"Webhook-Id": {eventID}, "Webhook-Timestamp": {strconv.FormatInt(seconds, 10)},
		"Webhook-Signature": {Signatures(eventID, seconds, body, secrets...)},
	}
}
