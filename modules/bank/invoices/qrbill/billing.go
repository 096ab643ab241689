package qrbill

import (
	"strings"
	"unicode/utf8"
)

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
	info := &BillingInformation{Raw: strings.TrimSpace(billing)}
	var broken []string
	if info.Swico, broken = parseSwico(info.Raw); len(broken) > 0 {
		p.report("billing_information", NoteBillingSyntax, strings.Join(broken, " "))
	}
	p.bill.Billing = info
}
