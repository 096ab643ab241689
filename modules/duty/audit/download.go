package audit

import (
	"bytes"
	"context"
	"fmt"
	"net/http"

	"github.com/gofiber/fiber/v2"

	"kontor/server/access"
	"kontor/server/apierr"
	"kontor/server/endpoint"
)

const (
	// maxDownload is the number of entries of one signed export.
	maxDownload = 10_000
	// linesMedia is the media type of JSON Lines.
	linesMedia = "application/jsonl"
)

type downloadInput struct {
	From *int64 `query:"from" minimum:"1" default:"1" example:"1" doc:"The number of the first entry."`
	To   *int64 `query:"to" minimum:"1" example:"42" doc:"The number of the last entry; without it, as many as there are, at most 10,000."`
}

// Validate checks the range.
func (in *downloadInput) Validate(v *apierr.Fields) {
	for name, number := range map[string]*int64{"from": in.From, "to": in.To} {
		if number != nil && *number < 1 {
			v.Add(name, "invalid.min", apierr.Args{"Min": 1})
		}
	}
	if first := in.first(); in.To != nil && !v.Has("to") && *in.To-first >= maxDownload {
		v.Add("to", "invalid.max", apierr.Args{"Max": first + maxDownload - 1})
	} else if in.To != nil && !v.Has("to") && *in.To < first {
		v.Add("to", "invalid.min", apierr.Args{"Min": first})
	}
}

func (in *downloadInput) first() int64 {
	if in.From == nil {
		return 1
	}
	return max(1, *in.From)
}

// download writes a part of the trail as a signed export, see [audittrail.VerifyExport]. It returns apierr.NoAccess, and
// apierr.AuditEntryNotFound for an empty part.
func (s *Service) download(ctx context.Context, r *endpoint.Request, in downloadInput) error {
	if !access.From(ctx).May(access.Audit, access.Read) {
		return apierr.NoAccess
	}
	if err := s.recorder.write(ctx, true); err != nil { // reading works even if the disk rejects writes
		s.log.Warn("cannot write security events", "cause", err)
	}
	first, limit := in.first(), int64(maxDownload)
	if in.To != nil {
		limit = *in.To - first + 1
	}
	batch, err := s.db.ExportAfter(ctx, first-1, int(limit))
	if err != nil {
		return err
	}
	if len(batch.Entries) == 0 {
		return apierr.AuditEntryNotFound
	}
	endpoint.Report(ctx, endpoint.Event{Kind: endpoint.Reading, Action: "audit.export"})
	last := batch.Entries[len(batch.Entries)-1].Seq
	response := r.Fiber.Response()
	response.SetStatusCode(http.StatusOK)
	response.Header.SetContentType(linesMedia)
	response.Header.Set(fiber.HeaderContentDisposition, fmt.Sprintf(`attachment; filename="audit-%d-%d.jsonl"`, batch.Entries[0].Seq, last))
	response.Header.Set(fiber.HeaderCacheControl, "no-store")
	response.SetBody(append(bytes.Join(batch.Lines, nil), batch.Head...))
	return nil
}
