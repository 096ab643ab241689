package app

import (
	"context"
	"errors"
	"time"

	"kontor/modules/bank/files"
	"kontor/modules/bank/invoices/qrbill"
	"kontor/modules/kit/attachment"
	"kontor/server/apierr"
)

// newFiles builds the module of evidence files.
func newFiles(m *Modules) *files.Service {
	holders := map[attachment.Kind]attachment.Holder{attachment.Document: m.Customers, attachment.Message: m.Chats, attachment.Task: m.Tasks}
	o := m.Settings.Files
	return files.New(m.DB, holders, files.Options{MaxBytes: o.MaxBytes, Quota: o.Quota, Clamd: o.Clamd, Renderer: renderer{m.bills}, Texts: m.Texts, Log: m.Log})
}

// renderer adapts the reader of bills for the module files: both use the same worker processes.
type renderer struct{ *qrbill.Reader }

const retryPreview = 2 * time.Second

// Render renders a page of a file.
func (r renderer) Render(ctx context.Context, caller string, load func() ([]byte, error), page, width int) (files.Preview, error) {
	picture, err := r.Preview(ctx, load, qrbill.PreviewOptions{Page: page, Width: width, Caller: caller})
	if err == nil {
		return files.Preview{JPEG: picture.JPEG, Pages: picture.Pages}, nil
	}
	problem, unreadable := errors.AsType[*qrbill.Error](err)
	switch {
	case errors.Is(err, qrbill.ErrBusy):
		return files.Preview{}, &apierr.Error{Kind: apierr.Unavailable, Cause: err, Retry: retryPreview}
	case unreadable && problem.Reason == qrbill.PageOutOfRange:
		return files.Preview{}, apierr.PageNotFound
	case unreadable:
		return files.Preview{}, apierr.PreviewImpossible.Wrap(err)
	}
	return files.Preview{}, err
}
