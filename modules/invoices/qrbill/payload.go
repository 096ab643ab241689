package qrbill

import (
	"regexp"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// Lines of the payload, counted from 0.
const (
	lineType = iota
	lineVersion
	lineCoding
	lineIBAN
	lineCreditor
	lineUltimateCreditor = lineCreditor + 7
	lineAmount           = lineUltimateCreditor + 7
	lineCurrency         = lineAmount + 1
	lineDebtor           = lineCurrency + 1
	lineReferenceType    = lineDebtor + 7
	lineReference        = lineReferenceType + 1
	lineMessage          = lineReference + 1
	lineTrailer          = lineMessage + 1
	lineBilling          = lineTrailer + 1
	lineAlternative      = lineBilling + 1
	maxLines             = lineAlternative + 2
)

// minLines are enough to know account, creditor and currency.
const minLines = lineCurrency + 1

const (
	trailer       = "EPD"
	headerMark    = "SPC"
	byteOrderMark = "\ufeff"
	maxTextBytes  = 16 << 10 // no symbol holds more than 7089 characters
)

// IsSwiss tells whether the text of a code begins like that of a QR-bill.
func IsSwiss(text string) bool {
	first, _, found := strings.Cut(strings.ReplaceAll(strings.TrimPrefix(text, byteOrderMark), "\r", "\n"), "\n")
	return found && strings.TrimSpace(first) == headerMark
}

// Parse reads the text of a Swiss QR code. It answers with everything that can
// be read, and with a Finding for every violation of the standard and every
// remark. The error is NotSwissQRBill or InvalidPayload when the text cannot be
// recognised as a QR-bill at all.
func Parse(text string) (*Bill, []Finding, error) {
	if len(text) > maxTextBytes {
		return nil, nil, because(InvalidPayload, "text of %d bytes", len(text))
	}
	if !IsSwiss(text) {
		return nil, nil, because(NotSwissQRBill, "the text does not begin with %s", headerMark)
	}
	p := &parser{bill: &Bill{}}
	if !utf8.ValidString(text) {
		text = strings.ToValidUTF8(text, "\ufffd")
	}
	p.splitLines(norm.NFC.String(strings.TrimPrefix(text, byteOrderMark)))
	if err := p.header(); err != nil {
		return nil, p.findings, err
	}
	p.account()
	p.bill.Creditor = p.party("creditor", lineCreditor)
	p.reserved()
	p.money()
	p.debtor()
	p.reference()
	p.text()
	return p.bill, p.findings, nil
}

type parser struct {
	lines    []string
	bill     *Bill
	findings []Finding
}

func (p *parser) found(element string, rule Rule, value string) {
	if rule != "" {
		p.findings = append(p.findings, Finding{element, rule, value})
	}
}

// line returns a line of the payload, "" when the text is shorter.
func (p *parser) line(i int) string {
	if i < len(p.lines) {
		return p.lines[i]
	}
	return ""
}

// splitLines accepts LF and CR LF, and with a violation also CR and mixtures.
func (p *parser) splitLines(text string) {
	rest := strings.ReplaceAll(text, "\r\n", "")
	pairs := len(text) - len(rest)
	if strings.Contains(rest, "\r") || (pairs > 0 && strings.Contains(rest, "\n")) {
		p.found("lines", RuleLineSeparator, "")
	}
	text = strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(text)
	// One line end after the last line is very common.
	p.lines = strings.Split(strings.TrimSuffix(text, "\n"), "\n")
}

var version = regexp.MustCompile(`^02\d\d$`)

func (p *parser) header() error {
	p.bill.Version = strings.TrimSpace(p.line(lineVersion))
	if !version.MatchString(p.bill.Version) {
		p.found("version", RuleValue, p.bill.Version)
		return &Error{Reason: InvalidPayload, Findings: p.findings}
	}
	if len(p.lines) < minLines {
		p.found("lines", RuleRequired, "")
		return &Error{Reason: InvalidPayload, Findings: p.findings}
	}
	if p.line(lineType) != headerMark {
		p.found("qr_type", RuleValue, p.line(lineType))
	}
	if p.line(lineVersion) != p.bill.Version {
		p.found("version", RuleFormat, p.line(lineVersion))
	}
	if coding := p.line(lineCoding); coding != "1" {
		p.found("coding", RuleValue, coding)
	}
	p.dropAfterEarlyTrailer()
	if p.line(lineTrailer) != trailer {
		p.found("trailer", RuleRequired, p.line(lineTrailer))
	}
	if len(p.lines) > maxLines {
		p.found("lines", RuleTooMany, p.line(maxLines))
		p.lines = p.lines[:maxLines]
	}
	return nil
}

// dropAfterEarlyTrailer ends the text at a trailer that comes too early, so
// that it is not taken for a value. What stands behind it has no known place.
func (p *parser) dropAfterEarlyTrailer() {
	if p.line(lineTrailer) == trailer {
		return
	}
	for i := lineCurrency + 1; i < lineTrailer && i < len(p.lines); i++ {
		if p.lines[i] == trailer {
			p.lines = p.lines[:i]
			return
		}
	}
}

func (p *parser) account() {
	raw := p.line(lineIBAN)
	p.bill.IBAN = strings.ToUpper(withoutBlanks(raw))
	rule := checkIBAN(p.bill.IBAN)
	if rule == "" && raw != p.bill.IBAN {
		rule = RuleFormat
	}
	p.found("iban", rule, raw)
}

// reserved checks the ultimate creditor, which the standard keeps for the future.
func (p *parser) reserved() {
	for i := lineUltimateCreditor; i < lineAmount; i++ {
		if p.line(i) != "" {
			p.found("ultimate_creditor", RuleMustBeEmpty, p.line(i))
			return
		}
	}
}

func (p *parser) money() {
	text := p.line(lineAmount)
	amount, rules := parseAmount(text)
	p.bill.Amount = amount
	for _, rule := range rules {
		p.found("amount", rule, text)
	}
	raw := p.line(lineCurrency)
	p.bill.Currency = strings.TrimSpace(raw)
	switch {
	case p.bill.Currency == "":
		p.found("currency", RuleRequired, "")
	case raw != "CHF" && raw != "EUR":
		p.found("currency", RuleValue, raw)
	}
}

func (p *parser) debtor() {
	filled := false
	for i := lineDebtor; i < lineReferenceType; i++ {
		filled = filled || strings.TrimSpace(p.line(i)) != ""
	}
	if !filled {
		return
	}
	debtor := p.party("debtor", lineDebtor)
	p.bill.Debtor = &debtor
}

func (p *parser) reference() {
	kind, raw := p.line(lineReferenceType), p.line(lineReference)
	p.bill.ReferenceType = strings.TrimSpace(kind)
	p.bill.Reference = withoutBlanks(raw)
	switch kind {
	case TypeQRR:
		p.written("reference", checkQRReference(p.bill.Reference), raw, p.bill.Reference)
	case TypeSCOR:
		p.written("reference", checkCreditorReference(p.bill.Reference), raw, p.bill.Reference)
	case TypeNON:
		if raw != "" {
			p.found("reference", RuleMustBeEmpty, raw)
		}
		p.bill.Reference = ""
	case "":
		p.found("reference_type", RuleRequired, "")
	default:
		p.found("reference_type", RuleValue, kind)
	}
	if checkIBAN(p.bill.IBAN) != "" {
		return // of an account that is none nobody can tell the kind
	}
	if known := kind == TypeQRR || kind == TypeSCOR || kind == TypeNON; known && isQRIBAN(p.bill.IBAN) != (kind == TypeQRR) {
		p.found("reference_type", RuleAccountType, kind)
	}
}

// written reports the rule, or else that the value is not written as it should be.
func (p *parser) written(element string, rule Rule, raw, clean string) {
	if rule == "" && raw != clean {
		rule = RuleFormat
	}
	p.found(element, rule, raw)
}
