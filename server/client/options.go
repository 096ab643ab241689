package client

import (
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

const (
	headerKey    = "Idempotency-Key"
	headerResume = "Last-Event-ID"
)

// CallOption changes one call.
type CallOption func(*call) error

// call is what the options of one call set.
type call struct {
	header http.Header
	meta   *Meta
}

// IfMatch changes a record only if it still is the version with this ETag. Otherwise the error is [ErrCommonPreconditionFailed].
// Rows of lists have no ETag: get the record first.
func IfMatch(etag string) CallOption { return conditional("If-Match", etag) }

// IfNoneMatch returns a record only if it is no longer the version with this ETag. Otherwise the error is [ErrNotModified].
func IfNoneMatch(etag string) CallOption { return conditional("If-None-Match", etag) }

func conditional(name, etag string) CallOption {
	return func(c *call) error {
		if etag == "" {
			return fmt.Errorf("%s without an ETag would have no effect", name)
		}
		c.header.Set(name, etag)
		return nil
	}
}

// IdempotencyKey sets the key with which a creation can be repeated within 24 hours, also by another process. Without this option, each
// call has a random key, for its own repetitions.
func IdempotencyKey(key string) CallOption {
	return func(c *call) error {
		if key == "" {
			return errors.New("the idempotency key is empty")
		}
		c.header.Set(headerKey, key)
		return nil
	}
}

// newKey returns a random idempotency key.
func newKey() string { return rand.Text() }

// After continues an event stream after the frame with this id.
func After(id string) CallOption { return header(headerResume, id) }

// InLanguage selects the language of texts for one call.
func InLanguage(tag string) CallOption { return header("Accept-Language", tag) }

// RequestID sets the id of the request, which also appears in the log of the service and, if it is random, in the audit trail.
func RequestID(id string) CallOption { return header("X-Request-ID", id) }

func header(name, value string) CallOption {
	return func(c *call) error {
		if value != "" {
			c.header.Set(name, value)
		}
		return nil
	}
}

// Meta is what the headers of an answer say.
type Meta struct {
	Status    int
	RequestID string
	ETag      string
	Replayed  bool // the answer is that of an earlier request with the same idempotency key
	Language  string

	RateLimit     int           // requests allowed in a minute; 0 if there is no limit
	RateRemaining int           // requests still allowed at once
	RateReset     time.Duration // until the full number is allowed again

	next string // the address of the next page
}

// Into stores what the headers of the answer say in meta.
func Into(meta *Meta) CallOption {
	return func(c *call) error {
		c.meta = meta
		return nil
	}
}

func newMeta(a *answer) Meta {
	number := func(name string) int {
		n, _ := strconv.Atoi(a.header.Get(name)) // 0 for a missing header
		return n
	}
	return Meta{
		Status: a.status, RequestID: a.header.Get("X-Request-ID"), ETag: a.header.Get("ETag"), Replayed: a.header.Get("Idempotency-Replayed") == "true",
		Language: a.header.Get("Content-Language"), RateLimit: number("RateLimit-Limit"), RateRemaining: number("RateLimit-Remaining"),
		RateReset: time.Duration(number("RateLimit-Reset")) * time.Second, next: nextPage(a.header),
	}
}

// nextPage returns the target of the Link header to the next page (RFC 8288).
func nextPage(h http.Header) string {
	for _, link := range h.Values("Link") {
		for part := range strings.SplitSeq(link, ",") {
			target, params, _ := strings.Cut(strings.TrimSpace(part), ";")
			if strings.Contains(params, `rel="next"`) && strings.HasPrefix(target, "<") {
				return strings.Trim(target, "<>")
			}
		}
	}
	return ""
}

// cursor returns the parameter "before" of an address. Only the parameter is used: an answer cannot send the client elsewhere.
func cursor(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return ""
	}
	return u.Query().Get("before")
}
