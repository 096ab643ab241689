package imports

import (
	"net/http"

	"kontor/modules/kit/upload"
	"kontor/server/access"
	"kontor/server/apierr"
	"kontor/server/endpoint"
	"kontor/server/ratelimit"
)

// fileForm is the form of an upload, for the API document.
type fileForm struct {
	File []byte `json:"file" required:"true" doc:"The table, in UTF-8, with a header. Cells are separated by commas or semicolons."`
}

const uploadNotes = "Send the table as the body, or as the member `file` of a form. Its columns are those of `GET /v1/customers` with `Accept: text/csv`, in any " +
	"order, and `external_id`. `last_name` and `email` are required; ids, times and the state of the verification have no effect. A file that is no " +
	"table is refused as a whole; rows that are no customers are counted as rejected. Each row is created in the name of the caller, with the rights " +
	"of the moment. The answer comes at once: read the state of the import at `GET /v1/imports/{id}`. A caller has one import at a time."

// Endpoints returns the rows of the module.
func (s *Service) Endpoints() []endpoint.Endpoint {
	staff := []string{access.Advisor}
	rows := []endpoint.Endpoint{
		{Name: "customers.import", Method: http.MethodPost, Path: "/v1/customers/import", Access: access.On(access.Customers, access.Create),
			Summary: "Import customers from a table.", MaxBody: int(s.MaxBytes) + upload.FormOverhead, OwnTime: true,
			Faults: []apierr.Kind{apierr.ImportUnfinished, apierr.ImportNotFound, apierr.TooManyAtOnce, apierr.PayloadTooLarge, apierr.RequestTimeout},
			Doc: endpoint.Doc{Body: fileForm{}, Description: uploadNotes, Example: "external_id,first_name,last_name,email\r\nK-1,Anna,Keller,anna@example.ch\r\n",
				Answers: []endpoint.Answer{{Status: http.StatusAccepted, Says: "The import waits for its turn.", Body: Import{}}}},
			Handle: endpoint.StreamedWith(http.StatusAccepted, []string{upload.FormMedia, csvMedia}, s.upload)},
		{Name: "imports.list", Method: http.MethodGet, Path: "/v1/imports", Access: access.SignedIn,
			Summary:     "List the own imports; administrators see all.",
			Compression: endpoint.Uncompressed, // failures have a code, as errors do
			Doc:         endpoint.Doc{Search: importList.Search()}, Handle: endpoint.JSON(http.StatusOK, s.List)},
		{Name: "imports.get", Method: http.MethodGet, Path: "/v1/imports/{id}", Access: access.SignedIn,
			Compression: endpoint.Uncompressed, Summary: "Get the state of an import.", Faults: []apierr.Kind{apierr.ImportNotFound}, Handle: endpoint.JSON(http.StatusOK, s.Get)},
		{Name: "imports.rejected", Method: http.MethodGet, Path: "/v1/imports/{id}/rejected", Access: access.SignedIn,
			Summary: "Get the rejected rows of an import.", Faults: []apierr.Kind{apierr.ImportNotFound},
			Doc: endpoint.Doc{Sends: []string{"Content-Disposition"}, Answers: []endpoint.Answer{{Status: http.StatusOK, Media: csvMedia, Says: "The lines, columns and reasons; the first 10,000."}},
				Description: "The columns are `line`, `field` and `message`. A row has a line for each column that is wrong. They are deleted with the import."},
			Handle: endpoint.Raw(nil, s.rejected)},
	}
	for i := range rows {
		rows[i].Tag, rows[i].Limit, rows[i].Roles = "Imports", ratelimit.Private, staff
	}
	rows[0].Tag = "Customers"
	return rows
}
