package invoices

import (
	"net/http"

	"kontor/server/access"
	"kontor/server/apierr"
	"kontor/server/endpoint"
	"kontor/server/ratelimit"
)

// bodyOverhead is the maximum size of a request without its file.
const bodyOverhead = 64 << 10

// Endpoints returns the endpoints of the module.
func (s *Service) Endpoints() []endpoint.Endpoint {
	encoded := s.reader.MaxBytes() / 3 * 4
	return []endpoint.Endpoint{
		// Bills belong to the caller, so that only the grant on the endpoint decides.
		{Name: "invoices.read_qr_code", Method: http.MethodPost, Path: "/v1/invoices/qrcode", Roles: []string{access.Advisor, access.Customer},
			Access: access.SignedIn, Limit: ratelimit.Private, Tag: "Invoices", MaxBody: encoded + encoded/16 + bodyOverhead, OwnTime: true,
			Summary: "Read the Swiss QR-bill of an invoice.",
			Faults:  []apierr.Kind{apierr.InvoiceInvalid, apierr.Unavailable, apierr.PayloadTooLarge},
			Handle:  endpoint.JSON(http.StatusOK, s.Read)},
		{Name: "invoices.bills", Method: http.MethodGet, Path: "/v1/invoices/bills", Roles: []string{access.Advisor, access.Customer},
			Access: access.SignedIn, Limit: ratelimit.Private, Tag: "Invoices", Summary: "List the bills that the caller has kept.",
			Doc: endpoint.Doc{Search: billList.Search()}, Handle: endpoint.JSON(http.StatusOK, s.Bills)},
		{Name: "invoices.forget", Method: http.MethodDelete, Path: "/v1/invoices/bills/{id}", Roles: []string{access.Advisor, access.Customer},
			Access: access.SignedIn, Limit: ratelimit.Private, Tag: "Invoices", Summary: "Delete a bill that the caller has kept.",
			Faults: []apierr.Kind{apierr.BillNotFound}, Handle: endpoint.JSON(http.StatusOK, s.Forget)},
	}
}
