package files

import (
	"context"
	"net/http"

	"kontor/modules/kit/attachment"
	"kontor/server/access"
	"kontor/server/apierr"
	"kontor/server/endpoint"
	"kontor/server/ratelimit"
)

// fileForm is the form of an upload, for the API document.
type fileForm struct {
	File []byte `json:"file" required:"true" doc:"A PDF, JPEG or PNG, recognised by its content. Its file name is kept, without characters that could mislead."`
}

// uploadTo returns the handler that adds a file to a record. parent and record are the names of the first two ids in the path.
func (s *Service) uploadTo(kind attachment.Kind, parent, record string) endpoint.Handler {
	return endpoint.Streamed(http.StatusCreated, media, func(ctx context.Context, r *endpoint.Request) (StoredFile, error) {
		target := attachment.Target{Kind: kind}
		var err error
		if target.Parent, err = idOf(r, 0, parent); err != nil {
			return StoredFile{}, err
		}
		if target.Record, err = idOf(r, 1, record); err != nil {
			return StoredFile{}, err
		}
		return s.upload(ctx, r, target)
	})
}

const uploadNotes = "Send a form, or the file itself with its name in the header `Content-Disposition`. The body is stored while it arrives and must not " +
	"pause for more than 15 seconds. `Content-Digest` and `Repr-Digest` with sha-256 are compared with the file. An `Idempotency-Key` covers the length, " +
	"name and digest of the file that the headers state."

// Endpoints returns the rows of the module.
func (s *Service) Endpoints() []endpoint.Endpoint {
	uploads := []apierr.Kind{apierr.FileRecordNotFound, apierr.FileType, apierr.FileInvalid, apierr.TooManyFiles, apierr.QuotaExceeded, apierr.PayloadTooLarge,
		apierr.RequestTimeout, apierr.TooManyAtOnce, apierr.RecordErased}
	binary := []endpoint.Answer{
		{Status: http.StatusOK, Media: mediaPDF, Says: "The file."}, {Status: http.StatusOK, Media: mediaJPEG, Says: "The file."},
		{Status: http.StatusOK, Media: mediaPNG, Says: "The file."},
		{Status: http.StatusPartialContent, Media: mediaPDF, Says: "The range."}, {Status: http.StatusPartialContent, Media: mediaJPEG, Says: "The range."},
		{Status: http.StatusPartialContent, Media: mediaPNG, Says: "The range."},
		{Status: http.StatusNotModified},
	}
	rows := []endpoint.Endpoint{
		{Name: "files.add_to_document", Method: http.MethodPost, Path: "/v1/customers/{id}/kyc/documents/{document_id}/files",
			Access: access.On(access.Customers, access.Update), Summary: "Upload a file as evidence of a document.",
			Faults: append([]apierr.Kind{apierr.CustomerNotFound}, uploads...), Handle: s.uploadTo(attachment.Document, "id", "document_id")},
		{Name: "files.add_to_message", Method: http.MethodPost, Path: "/v1/chats/{id}/messages/{message_id}/files",
			Access: access.On(access.Chats, access.Update), Summary: "Upload a file to an own message.",
			Faults: append([]apierr.Kind{apierr.ChatNotFound}, uploads...), Handle: s.uploadTo(attachment.Message, "id", "message_id")},
		{Name: "files.add_to_task", Method: http.MethodPost, Path: "/v1/customers/{customer_id}/tasks/{id}/files",
			Access: access.On(access.Tasks, access.Read), Summary: "Upload a file to a task.",
			Faults: append([]apierr.Kind{apierr.TaskNotFound, apierr.TaskInvalidTransition}, uploads...), Handle: s.uploadTo(attachment.Task, "customer_id", "id")},
		{Name: "files.of_customer", Method: http.MethodGet, Path: "/v1/customers/{id}/kyc/files",
			Access: access.On(access.Customers, access.Read), Summary: "List the evidence of a customer, the newest first.",
			Faults: []apierr.Kind{apierr.CustomerNotFound}, Handle: endpoint.JSON(http.StatusOK, s.ofCustomer)},
		{Name: "files.of_chat", Method: http.MethodGet, Path: "/v1/chats/{id}/files",
			Access: access.On(access.Chats, access.Read), Summary: "List the files of a chat, the newest first.",
			Faults: []apierr.Kind{apierr.ChatNotFound}, Handle: endpoint.JSON(http.StatusOK, s.ofChat)},
		{Name: "files.of_task", Method: http.MethodGet, Path: "/v1/customers/{customer_id}/tasks/{id}/files",
			Access: access.On(access.Tasks, access.Read), Summary: "List the files of a task, the newest first.",
			Faults: []apierr.Kind{apierr.TaskNotFound}, Handle: endpoint.JSON(http.StatusOK, s.ofTask)},
		{Name: "files.get", Method: http.MethodGet, Path: "/v1/files/{id}",
			Access: access.SignedIn, Summary: "Get a file without its content.",
			Faults: []apierr.Kind{apierr.FileNotFound, apierr.NoAccess}, Handle: endpoint.JSON(http.StatusOK, s.get)},
		{Name: "files.content", Method: http.MethodGet, Path: "/v1/files/{id}/content",
			Access: access.SignedIn, Summary: "Download a file as it was uploaded.",
			Faults: []apierr.Kind{apierr.FileNotFound, apierr.NoAccess, apierr.FileBeingChecked, apierr.FileInfected, apierr.TooManyAtOnce,
				apierr.RangeBeyondEnd},
			Doc: endpoint.Doc{Answers: binary, Headers: []string{"If-None-Match", "Range", "If-Range"},
				Sends:       []string{"Accept-Ranges", "Content-Disposition", "Content-Range", "Repr-Digest"},
				Description: "Always a download. `Range` takes one range of bytes; several ranges are answered with the whole file. `Repr-Digest` has the digest of the file."},
			Handle: endpoint.Raw(nil, s.content)},
		{Name: "files.preview", Method: http.MethodGet, Path: "/v1/files/{id}/preview", OpenQuery: true, OwnTime: true,
			Access: access.SignedIn, Summary: "Get a picture of a page.",
			Faults: []apierr.Kind{apierr.InvalidInput, apierr.FileNotFound, apierr.NoAccess, apierr.FileBeingChecked, apierr.FileInfected, apierr.PreviewImpossible,
				apierr.PageNotFound, apierr.Unavailable},
			Doc: endpoint.Doc{Headers: []string{"If-None-Match"}, Sends: []string{"Content-Disposition", "X-Page-Count"}, Answers: []endpoint.Answer{
				{Status: http.StatusOK, Media: mediaJPEG, Says: "The page, without metadata."}, {Status: http.StatusNotModified}},
			},
			Handle: endpoint.RawInput(s.preview)},
		{Name: "files.delete", Method: http.MethodDelete, Path: "/v1/files/{id}",
			Access: access.SignedIn, Summary: "Delete a file.",
			Faults: []apierr.Kind{apierr.FileNotFound, apierr.NoAccess, apierr.FileLocked, apierr.RecordErased, apierr.TaskInvalidTransition},
			Handle: endpoint.JSON(http.StatusOK, s.remove)},
	}
	for i := range rows {
		rows[i].Tag, rows[i].Limit, rows[i].Roles = "Files", ratelimit.Private, []string{access.Advisor, access.Customer}
		if rows[i].Handle.Streams {
			rows[i].MaxBody, rows[i].OwnTime = int(s.MaxBytes)+formOverhead, true
			rows[i].Doc.Body, rows[i].Doc.Description = fileForm{}, uploadNotes
		}
	}
	return rows
}
