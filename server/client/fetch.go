package client

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
)

// locationOnly is the accept of operations whose answer is a redirect: the client returns its address.
const locationOnly = "location"

// fetch calls an operation that returns an object.
func fetch[T any](ctx context.Context, c *Client, op operation, in input, options []CallOption) (*T, error) {
	value, err := fetchNullable[T](ctx, c, op, in, options)
	if err == nil && value == nil {
		err = fmt.Errorf("%s: %w: null", op.name, ErrUnexpected)
	}
	return value, err
}

// fetchNullable calls an operation that returns an object or null.
func fetchNullable[T any](ctx context.Context, c *Client, op operation, in input, options []CallOption) (*T, error) {
	a, err := c.send(ctx, op, in, options)
	if err != nil {
		return nil, err
	}
	return decode[T](op, a)
}

// decode decodes an answer.
func decode[T any](op operation, a *answer) (*T, error) {
	var value *T
	if err := json.Unmarshal(a.body, &value); err != nil {
		return nil, fmt.Errorf("%s: %w: %w", op.name, ErrUnexpected, err)
	}
	if tagged, ok := any(value).(interface{ setETag(string) }); ok && value != nil {
		tagged.setETag(a.header.Get("ETag"))
	}
	return value, nil
}

// fetchEither calls an operation that returns one object with 200 and another one with 202. The other result is nil.
func fetchEither[A, B any](ctx context.Context, c *Client, op operation, in input, options []CallOption) (*A, *B, error) {
	a, err := c.send(ctx, op, in, options)
	if err != nil {
		return nil, nil, err
	}
	if bytes.Equal(a.body, []byte("null")) {
		return nil, nil, fmt.Errorf("%s: %w: null", op.name, ErrUnexpected)
	}
	if a.status == http.StatusAccepted {
		second, err := decode[B](op, a)
		return nil, second, err
	}
	first, err := decode[A](op, a)
	return first, nil, err
}

// fetchList calls an operation that returns an array.
func fetchList[T any](ctx context.Context, c *Client, op operation, in input, options []CallOption) ([]T, error) {
	list, err := fetch[[]T](ctx, c, op, in, options)
	if err != nil {
		return nil, err
	}
	return *list, nil
}

// fetchRaw calls an operation that returns JSON of any form.
func fetchRaw(ctx context.Context, c *Client, op operation, in input, options []CallOption) (json.RawMessage, error) {
	a, err := c.send(ctx, op, in, options)
	if err != nil {
		return nil, err
	}
	if !json.Valid(a.body) {
		return nil, fmt.Errorf("%s: %w: broken JSON", op.name, ErrUnexpected)
	}
	return a.body, nil
}

// fetchText calls an operation that returns a text.
func fetchText(ctx context.Context, c *Client, op operation, in input, options []CallOption) (string, error) {
	a, err := c.send(ctx, op, in, options)
	if err != nil {
		return "", err
	}
	return string(a.body), nil
}

// fetchFile calls an operation that returns a file.
func fetchFile(ctx context.Context, c *Client, op operation, in input, options []CallOption) (*File, error) {
	a, err := c.send(ctx, op, in, options)
	if err != nil {
		return nil, err
	}
	return &File{MediaType: mediaType(a.header), Data: a.body, ETag: a.header.Get("ETag")}, nil
}

// fetchLocation calls an operation that redirects a browser, and returns the address.
func fetchLocation(ctx context.Context, c *Client, op operation, in input, options []CallOption) (string, error) {
	op.accept = locationOnly
	a, err := c.send(ctx, op, in, options)
	if err != nil {
		return "", err
	}
	if location := a.header.Get("Location"); location != "" {
		return location, nil
	}
	return "", fmt.Errorf("%s: %w: no Location", op.name, ErrUnexpected)
}
