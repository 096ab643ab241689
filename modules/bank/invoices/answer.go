package invoices

import (
	"strconv"

	"kontor/modules/bank/invoices/qrbill"
)

// ReadResult is the response for a file with a bill.
type ReadResult struct {
	QRInfo QRInfo `json:"qr_info"`
	BillID string `json:"bill_id,omitzero" doc:"Of the kept bill, with options.keep."`
}

// QRInfo is the payment that a QR-bill requests.
type QRInfo struct {
	IBAN                  string    `json:"iban"`
	Creditor              Party     `json:"creditor"`
	Amount                *float64  `json:"amount" doc:"null when the payer enters the amount."`
	Currency              string    `json:"currency" example:"CHF"`
	ReferenceType         string    `json:"reference_type" example:"QRR" doc:"QRR, SCOR or NON; another type is returned as it is, with a warning."`
	Reference             string    `json:"reference"`
	Message               string    `json:"message" example:"Invoice of 15 June"`
	Debtor                *Party    `json:"debtor"`
	BillingInformation    *Billing  `json:"billing_information"`
	AlternativeProcedures []string  `json:"alternative_procedures" example:"eBill/B/anna.keller@example.ch"`
	Page                  int       `json:"page"`
	Warnings              []Warning `json:"warnings"`
}

// Party is a creditor or a debtor.
type Party struct {
	Name         string   `json:"name" example:"Robert Schneider AG"`
	Address      string   `json:"address"`
	Zip          string   `json:"zip" example:"2501"`
	City         string   `json:"city" example:"Biel"`
	Country      string   `json:"country" example:"CH"`
	AddressLines []string `json:"address_lines" example:"" doc:"The raw lines of a combined address; empty for a structured one."`
}

// Billing is information for the payer's bookkeeping.
type Billing struct {
	Raw   string `json:"raw" example:"//S1/10/10201409/11/190512"`
	Swico *Swico `json:"swico"` // null unless the syntax is S1
}

// Swico is billing information in the syntax S1.
type Swico struct {
	InvoiceNumber     string     `json:"invoice_number" example:"10201409"`
	InvoiceDate       string     `json:"invoice_date" example:"190512"`
	CustomerReference string     `json:"customer_reference" example:"140.000-53"`
	UID               string     `json:"uid" example:"106017086"`
	ServiceDate       string     `json:"service_date" example:"180508"`
	ServiceEnd        string     `json:"service_end" example:""`
	VATRates          []Rate     `json:"vat_rates"`
	ImportVAT         []Rate     `json:"import_vat"`
	Conditions        []Discount `json:"conditions"`
	DueDate           string     `json:"due_date" example:""`
}

// Rate is a VAT rate in per cent and its amount, as written on the bill.
type Rate struct {
	Rate   string `json:"rate" example:"8.1"`
	Amount string `json:"amount" example:"1803.66"`
}

// Discount is a discount for payment within a number of days.
type Discount struct {
	Percent string `json:"percent" example:"2"`
	Days    int    `json:"days" example:"10"`
}

// Kinds of warnings.
const (
	WarningViolation = "violation"  // violates the standard; strict validation rejects the bill
	WarningNotice    = "notice"     // unusual, but accepted
	WarningOtherBill = "other_bill" // the file contains another bill
)

// Warning is a problem or a remark about a bill.
type Warning struct {
	Kind    string `json:"kind" enum:"violation,notice,other_bill"`
	Element string `json:"element" example:"creditor.address_type"` // element of the bill
	Rule    string `json:"rule" example:"combined_address"`
	Value   string `json:"value" example:"K"` // value of the element; the IBAN of another bill
	Page    int    `json:"page,omitzero"`
	Message string `json:"message" example:"The address is a combined one."` // in the language of the request
}

// newQRInfo converts a result. describe renders a warning in the language of the request.
func newQRInfo(r *qrbill.Result, describe func(Warning) string) QRInfo {
	b := r.Bill
	info := QRInfo{
		IBAN: b.IBAN, Creditor: newParty(b.Creditor), Currency: b.Currency, ReferenceType: b.ReferenceType,
		Reference: b.Reference, Message: b.Message, Page: r.Page,
		AlternativeProcedures: append([]string{}, b.AlternativeProcedures...), Warnings: []Warning{},
	}
	if b.Amount != nil {
		// This is exact: the amount has at most 14 digits, and the encoder writes the shortest decimal form.
		amount := float64(*b.Amount) / 100
		info.Amount = &amount
	}
	if b.Debtor != nil {
		debtor := newParty(*b.Debtor)
		info.Debtor = &debtor
	}
	if b.Billing != nil {
		info.BillingInformation = &Billing{Raw: b.Billing.Raw, Swico: newSwico(b.Billing.Swico)}
	}
	for _, f := range r.Findings {
		info.Warnings = append(info.Warnings, findingWarning(f))
	}
	for _, o := range r.Others {
		info.Warnings = append(info.Warnings, Warning{Kind: WarningOtherBill, Value: o.Bill.IBAN, Page: o.Page})
	}
	for i := range info.Warnings {
		info.Warnings[i].Message = describe(info.Warnings[i])
	}
	return info
}

func newParty(p qrbill.Party) Party {
	return Party{p.Name, p.Address, p.Zip, p.City, p.Country, append([]string{}, p.Lines...)}
}

func newSwico(s *qrbill.Swico) *Swico {
	if s == nil {
		return nil
	}
	out := &Swico{
		InvoiceNumber: s.InvoiceNumber, InvoiceDate: s.InvoiceDate, CustomerReference: s.CustomerReference, UID: s.UID,
		ServiceDate: s.ServiceDate, ServiceEnd: s.ServiceEnd, DueDate: s.DueDate,
		VATRates: newRates(s.VATRates), ImportVAT: newRates(s.ImportVAT), Conditions: []Discount{},
	}
	for _, c := range s.Conditions {
		days, err := strconv.Atoi(c.Value)
		if err != nil {
			continue // cannot occur: the parser accepts only digits
		}
		out.Conditions = append(out.Conditions, Discount{c.Rate, days})
	}
	return out
}

func newRates(pairs []qrbill.Pair) []Rate {
	rates := make([]Rate, 0, len(pairs))
	for _, p := range pairs {
		rates = append(rates, Rate{p.Rate, p.Value})
	}
	return rates
}

func findingWarning(f qrbill.Finding) Warning {
	kind := WarningViolation
	if f.Tolerated() {
		kind = WarningNotice
	}
	return Warning{Kind: kind, Element: f.Element, Rule: string(f.Rule), Value: f.Value}
}
