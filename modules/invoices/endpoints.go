package invoices

import (
	"net/http"

	"kontor/server/access"
	"kontor/server/apierr"
	"kontor/server/endpoint"
	"kontor/server/ratelimit"
)

// bodyRoom is what a request may need beside the base64 of the file.
const bodyRoom = 64 << 10

// Endpoints are the rows of the module.
func (s *Service) Endpoints() []endpoint.Endpoint {
	encoded := s.reader.MaxBytes() / 3 * 4
	return []endpoint.Endpoint{
		// Nothing is stored, so there is no record to hold a right on: the grant on the endpoint decides.
		{Name: "invoices.read_qr_code", Method: http.MethodPost, Path: "/v1/invoices/qrcode", Roles: []string{access.Advisor},
			Access: access.SignedIn, Limit: ratelimit.Private, Tag: "Invoices", MaxBody: encoded + encoded/16 + bodyRoom, OwnTime: true,
			Summary: "Read the payment from the Swiss QR-bill in an invoice.",
			Faults:  []apierr.Kind{apierr.InvoiceInvalid, apierr.Unavailable, apierr.PayloadTooLarge},
			Handle:  endpoint.JSON(http.StatusOK, s.Read)},
	}
}
