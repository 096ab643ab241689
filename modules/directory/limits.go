package directory

import (
	"context"
	"encoding/hex"
	"errors"
	"time"

	"kontor/server/access"
	"kontor/server/apierr"
	"kontor/server/endpoint"
	"kontor/store"
)

// Messages can be abused: to annoy their recipients, to run up costs, and to find out which addresses have an account. The
// counts are rows, so that they survive a restart.
const (
	// One target gets few messages, whoever asks for them.
	otpSends     = 3
	otpWindow    = 10 * time.Minute
	userSends    = 10 // that one user has sent, to whatever targets, in an hour
	dailyOfUser  = 30
	failedCodes  = 1000 // wrong codes of everybody in an hour; after that each code has one try
	hour, day    = time.Hour, 24 * time.Hour
	keyFactor    = 2 // an API key serves many networks
	conflictPart = 2 // half as many registrations of taken values as messages

	// registrationPercent is how many free values can be registered for 100 messages: their first e-mail does not count as
	// one, but a refusal must come before a list of 100 addresses has been probed.
	registrationPercent = 150
)

// dailySends are the messages that one target gets in a day for a purpose.
var dailySends = map[string]int{forValidation: 10, forRecovery: 30}

// quota is how many events of a subject are allowed within a window.
type quota struct {
	subject string
	most    int
	window  time.Duration
}

// limits are quotas that one event counts for, refused with one kind.
type limits struct {
	refusal apierr.Kind
	quotas  []quota
}

// subject names what is counted. Neither addresses nor networks can be read in the table.
func (s *Service) subject(kind, text string) string {
	return hex.EncodeToString(s.db.Keyed("otp "+kind, []byte(text)))
}

// byCaller are the quotas of an API key and of the network that a request comes from.
func (s *Service) byCaller(ctx context.Context, kind string, perHour int) (quotas []quota) {
	if perHour <= 0 {
		return nil
	}
	request := endpoint.Of(ctx)
	quotas = append(quotas, quota{s.subject(kind+" network", request.Network()), perHour, hour})
	if key := access.From(ctx).KeyID; key != "" {
		quotas = append(quotas, quota{s.subject(kind+" key", key), keyFactor * perHour, hour})
	}
	return quotas
}

// sendLimits are those of a message to a target, whether or not the target exists. The day is counted for each purpose, so
// that adding an address to an account does not block the recovery of the account that has it.
func (s *Service) sendLimits(ctx context.Context, key, purpose string) limits {
	l := s.targetLimits(ctx, key, purpose)
	l.quotas = append(l.quotas, s.byCaller(ctx, "send", s.PerHour)...)
	return l
}

// targetLimits are those of a target and of the user who asks.
func (s *Service) targetLimits(ctx context.Context, key, purpose string) limits {
	l := limits{refusal: apierr.OTPSendLimited, quotas: []quota{
		{s.subject("target", key), otpSends, otpWindow},
		{s.subject("target for "+purpose, key), dailySends[purpose], day},
	}}
	if user := access.From(ctx).UserID; user != "" {
		subject := s.subject("user", user)
		l.quotas = append(l.quotas, quota{subject, userSends, hour}, quota{subject, dailyOfUser, day})
	}
	return l
}

// registrationLimits are those of a registration.
func (s *Service) registrationLimits(ctx context.Context) limits {
	return limits{apierr.RateLimited, s.byCaller(ctx, "registration", registrationPercent*s.PerHour/100)}
}

// firstCodeLimits are those of the message that goes with a registration. An SMS costs money and counts like any other; an
// e-mail is bounded by its target and by the registrations.
func (s *Service) firstCodeLimits(ctx context.Context, c Credential) limits {
	switch c.Type {
	case Phone:
		return s.sendLimits(ctx, c.target(), forValidation)
	case Email:
		return s.targetLimits(ctx, c.target(), forValidation)
	default:
		return limits{}
	}
}

// conflictLimits are those of a registration of a taken value. Once they are used up, free values are refused, too:
// otherwise the refusal would reveal the same as a conflict.
func (s *Service) conflictLimits(ctx context.Context) limits {
	return limits{apierr.RateLimited, s.byCaller(ctx, "conflict", s.PerHour/conflictPart)}
}

// tries is how many wrong entries a code survives.
func (s *Service) tries(ctx context.Context, q store.Querier) (int, error) {
	wait, err := waitFor(ctx, q, quota{s.subject("failed", ""), failedCodes, hour})
	if err == nil && wait > 0 {
		return 1, nil
	}
	return s.OTPAttempts, err
}

// countFailure notes that somebody has entered a wrong code. Beyond the budget nothing is noted: a flood of wrong codes
// must not fill the table.
func (s *Service) countFailure(ctx context.Context, tx *store.Tx) error {
	failed := quota{s.subject("failed", ""), failedCodes, hour}
	if wait, err := waitFor(ctx, tx, failed); err != nil || wait > 0 {
		return err
	}
	return insertEvent(ctx, tx, failed.subject)
}

// check refuses an event that would exceed a quota. It writes nothing.
func (l limits) check(ctx context.Context, q store.Querier) error {
	var wait time.Duration
	for _, each := range l.quotas {
		pause, err := waitFor(ctx, q, each)
		if err != nil {
			return err
		}
		wait = max(wait, pause)
	}
	if wait > 0 {
		return l.refusal.RetryAfter(wait)
	}
	return nil
}

// take counts an event, or refuses it before anything is written.
func (l limits) take(ctx context.Context, tx *store.Tx) error {
	if err := l.check(ctx, tx); err != nil {
		return err
	}
	return l.count(ctx, tx)
}

// count notes an event for each subject, whether or not it exceeds a quota.
func (l limits) count(ctx context.Context, tx *store.Tx) error {
	last := ""
	for _, each := range l.quotas {
		if each.subject == last { // two windows of one subject stand side by side
			continue
		}
		if err := insertEvent(ctx, tx, each.subject); err != nil {
			return err
		}
		last = each.subject
	}
	return nil
}

const (
	// The event that has to leave the window before another one is allowed. What a clock that was set back shows as the
	// future does not count: it would count for as long as the clock is behind.
	selectLimiting = `
		SELECT sent_at FROM otp_sends
		WHERE target = $1 AND sent_at > $2 AND sent_at <= $3
		ORDER BY sent_at DESC LIMIT 1 OFFSET $4`

	insertSend = `INSERT INTO otp_sends (id, target, sent_at) VALUES ($1, $2, $3)`

	deleteOldSends = `
		DELETE FROM otp_sends WHERE id IN (SELECT id FROM otp_sends WHERE sent_at <= $1 ORDER BY sent_at LIMIT $2)`
)

// waitFor returns how long a quota refuses, zero for not at all.
func waitFor(ctx context.Context, q store.Querier, limited quota) (time.Duration, error) {
	now := q.Now()
	var at store.Time
	err := q.QueryRow(ctx, selectLimiting, limited.subject, now.Add(-limited.window), now, limited.most-1).Scan(&at)
	if errors.Is(err, store.ErrNotFound) {
		return 0, nil
	}
	return time.Duration(at.Add(limited.window)-now) * time.Millisecond, err
}

func insertEvent(ctx context.Context, tx *store.Tx, subject string) error {
	_, err := tx.Exec(ctx, insertSend, store.NewID(), subject, tx.Now())
	return err
}

// purgeBatch is how many rows one transaction deletes, so that others do not wait for it.
const purgeBatch = 500

// Purge deletes events that no window holds any more. It is to be called every hour or so.
func (s *Service) Purge(ctx context.Context) error {
	for deleted := int64(purgeBatch); deleted == purgeBatch; {
		err := s.db.InTx(ctx, func(tx *store.Tx) (err error) {
			deleted, err = tx.Exec(ctx, deleteOldSends, tx.Now().Add(-day), purgeBatch)
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}
