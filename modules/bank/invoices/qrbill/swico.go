package qrbill

import (
	"regexp"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// Billing is structured information for the payer's bookkeeping.
type Billing struct {
	Raw   string `json:"raw" example:"//S1/10/10201409/11/190512"`
	Swico *Swico `json:"swico"` // nil unless the syntax is S1
}

// Swico is billing information in the syntax S1. Values are unchanged, except for dates, which are YYYY-MM-DD. Invalid and
// unknown values are omitted; the raw text contains them.
type Swico struct {
	InvoiceNumber     string     `json:"invoice_number" example:"10201409"`
	InvoiceDate       string     `json:"invoice_date" example:"190512"`
	CustomerReference string     `json:"customer_reference" example:"140.000-53"`
	UID               string     `json:"uid" example:"106017086"` // nine digits, without CHE
	ServiceDate       string     `json:"service_date" example:"180508"`
	ServiceEnd        string     `json:"service_end" example:""` // end of the period; empty for a single day
	VATRates          []Rate     `json:"vat_rates"`              // with the net amount; no amount for a single rate
	ImportVAT         []Rate     `json:"import_vat"`             // with the amount of the import tax
	Conditions        []Discount `json:"conditions"`
	DueDate           string     `json:"due_date" example:""` // invoice date plus the days of the condition with 0 per cent
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

const swicoPrefix = "//S1/"

// parseSwico parses the syntax S1. It also returns the tags with invalid values. For another syntax it returns nil.
func parseSwico(raw string) (*Swico, []string) {
	if !strings.HasPrefix(raw, swicoPrefix) {
		return nil, nil
	}
	parts := splitEscaped(raw[len(swicoPrefix):])
	s, broken := &Swico{}, []string(nil)
	previous := ""
	for i := 0; i < len(parts); i += 2 {
		tag := parts[i]
		if tag == "" && i == len(parts)-1 {
			break // a trailing slash
		}
		if i+1 == len(parts) {
			broken = append(broken, tag)
			break
		}
		if !s.set(tag, parts[i+1]) || tag <= previous {
			broken = append(broken, tag)
		}
		previous = tag
	}
	s.due()
	return s, broken
}

// splitEscaped splits a text at slashes. A backslash escapes a slash or a backslash.
func splitEscaped(s string) []string {
	parts, part := []string(nil), strings.Builder{}
	for i := 0; i < len(s); i++ {
		switch {
		case s[i] == '\\' && i+1 < len(s) && (s[i+1] == '/' || s[i+1] == '\\'):
			i++
			part.WriteByte(s[i])
		case s[i] == '/':
			parts = append(parts, part.String())
			part.Reset()
		default:
			part.WriteByte(s[i])
		}
	}
	return append(parts, part.String())
}

var (
	number = regexp.MustCompile(`^\d+(\.\d+)?$`)
	uid    = regexp.MustCompile(`^\d{9}$`)
	days   = regexp.MustCompile(`^\d{1,4}$`)
)

func (s *Swico) set(tag, value string) (ok bool) {
	switch tag {
	case "10":
		s.InvoiceNumber, ok = value, value != ""
	case "11":
		s.InvoiceDate, ok = swicoDate(value)
	case "20":
		s.CustomerReference, ok = value, value != ""
	case "30":
		if ok = uid.MatchString(value); ok {
			s.UID = value
		}
	case "31":
		ok = s.setService(value)
	case "32":
		s.VATRates, ok = pairs(value, number, true)
	case "33":
		s.ImportVAT, ok = pairs(value, number, false)
	case "40":
		ok = s.setConditions(value)
	default:
		// Tag 01 and others are specific to the biller.
		ok = len(tag) == 2 && allDigits(tag)
	}
	return ok
}

func (s *Swico) setService(value string) (ok bool) {
	if len(value) != 12 {
		s.ServiceDate, ok = swicoDate(value)
		return ok
	}
	from, ok1 := swicoDate(value[:6])
	to, ok2 := swicoDate(value[6:])
	if !ok1 || !ok2 || to < from {
		return false
	}
	s.ServiceDate, s.ServiceEnd = from, to
	return true
}

func (s *Swico) setConditions(value string) bool {
	conditions, ok := pairs(value, days, false)
	s.Conditions = nil
	for _, c := range conditions {
		n, _ := strconv.Atoi(c.Amount) // one to four digits
		s.Conditions = append(s.Conditions, Discount{c.Rate, n})
	}
	return ok
}

// swicoDate parses YYMMDD as a date in this century.
func swicoDate(value string) (string, bool) {
	if len(value) != 6 || !allDigits(value) {
		return "", false
	}
	day, err := time.Parse("20060102", "20"+value)
	if err != nil {
		return "", false
	}
	return day.Format(time.DateOnly), true
}

// pairs parses a list such as "8:1000;2.5:51.8". With single, it also accepts one rate alone.
func pairs(value string, second *regexp.Regexp, single bool) ([]Rate, bool) {
	if single && number.MatchString(value) {
		return []Rate{{Rate: value}}, true
	}
	var list []Rate
	for entry := range strings.SplitSeq(value, ";") {
		rate, v, _ := strings.Cut(entry, ":")
		if !number.MatchString(rate) || !second.MatchString(v) {
			return nil, false
		}
		list = append(list, Rate{rate, v})
	}
	return list, true
}

// due computes the due date from the invoice date and the condition without discount.
func (s *Swico) due() {
	start, err := time.Parse(time.DateOnly, s.InvoiceDate)
	if err != nil {
		return
	}
	for _, c := range s.Conditions {
		if strings.Trim(c.Percent, "0.") == "" {
			s.DueDate = start.AddDate(0, 0, c.Days).Format(time.DateOnly)
			return
		}
	}
}

const (
	maxMessage     = 140
	maxTogether    = 140 // of message and billing information
	maxAlternative = 100
	ebillPrefix    = "ebill/"
)

// text parses the message, the billing information and the alternative procedures.
func (p *parser) text() {
	message, billing := p.line(lineMessage), p.line(lineBilling)
	p.bill.Message = message
	if strings.TrimSpace(message) == "" {
		p.bill.Message = ""
	}
	p.field("message", message, maxMessage, false)

	alternatives := lineAlternative
	switch {
	case billing == "":
	case strings.HasPrefix(billing, "//"):
		p.billing(message, billing)
	case strings.HasPrefix(strings.ToLower(billing), ebillPrefix):
		// Some generators omit the empty line of the billing information.
		p.report("billing_information", NoteBillingLine, billing)
		alternatives = lineBilling
	default:
		p.report("billing_information", RuleFormat, billing)
	}
	for i := alternatives; i < len(p.lines); i++ {
		value := p.line(i)
		if strings.TrimSpace(value) == "" {
			continue
		}
		if len(p.bill.AlternativeProcedures) == 2 {
			p.report("alternative_procedures", RuleTooMany, value)
			return
		}
		p.field("alternative_procedures", value, maxAlternative, false)
		p.bill.AlternativeProcedures = append(p.bill.AlternativeProcedures, strings.TrimSpace(value))
	}
}

func (p *parser) billing(message, billing string) {
	p.field("billing_information", billing, maxTogether, false)
	if n := utf8.RuneCountInString(message) + utf8.RuneCountInString(billing); n > maxTogether && utf8.RuneCountInString(billing) <= maxTogether {
		p.report("billing_information", RuleTotalLength, billing)
	}
	info := &Billing{Raw: strings.TrimSpace(billing)}
	var broken []string
	if info.Swico, broken = parseSwico(info.Raw); len(broken) > 0 {
		p.report("billing_information", NoteBillingSyntax, strings.Join(broken, " "))
	}
	p.bill.Billing = info
}
