package qrbill

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"
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

// minLines is the number of lines up to the currency. A shorter text is not a bill.
const minLines = lineCurrency + 1

const (
	trailer       = "EPD"
	headerMark    = "SPC"
	byteOrderMark = "\ufeff"
	maxTextBytes  = 16 << 10 // a symbol holds at most 7089 characters
)

// IsSwiss reports whether the text of a code begins like that of a QR-bill.
func IsSwiss(text string) bool {
	first, _, found := strings.Cut(strings.ReplaceAll(strings.TrimPrefix(text, byteOrderMark), "\r", "\n"), "\n")
	return found && strings.TrimSpace(first) == headerMark
}

// Parse parses the text of a Swiss QR code. It returns all values that it can read, and a Finding for every violation of the
// standard and every remark. The rules are those at a time, since some depend on the version of the standard. For a text that is
// not a QR-bill, it returns NotSwissQRBill or InvalidPayload.
func Parse(text string, at time.Time) (*Bill, []Finding, error) {
	if len(text) > maxTextBytes {
		return nil, nil, errorf(InvalidPayload, "text of %d bytes", len(text))
	}
	if !IsSwiss(text) {
		return nil, nil, errorf(NotSwissQRBill, "the text does not begin with %s", headerMark)
	}
	p := &parser{bill: &Bill{}, at: at}
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
	at       time.Time
	findings []Finding
}

func (p *parser) report(element string, rule Rule, value string) {
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

// splitLines splits a text at LF or CR LF. It accepts CR and mixtures as violations.
func (p *parser) splitLines(text string) {
	rest := strings.ReplaceAll(text, "\r\n", "")
	pairs := len(text) - len(rest)
	if strings.Contains(rest, "\r") || (pairs > 0 && strings.Contains(rest, "\n")) {
		p.report("lines", RuleLineSeparator, "")
	}
	text = strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(text)
	// A line end after the last line is common and not a violation.
	p.lines = strings.Split(strings.TrimSuffix(text, "\n"), "\n")
}

var version = regexp.MustCompile(`^02\d\d$`)

func (p *parser) header() error {
	p.bill.Version = strings.TrimSpace(p.line(lineVersion))
	if !version.MatchString(p.bill.Version) {
		p.report("version", RuleValue, p.bill.Version)
		return &Error{Reason: InvalidPayload, Findings: p.findings}
	}
	if len(p.lines) < minLines {
		p.report("lines", RuleRequired, "")
		return &Error{Reason: InvalidPayload, Findings: p.findings}
	}
	if p.line(lineType) != headerMark {
		p.report("qr_type", RuleValue, p.line(lineType))
	}
	if p.line(lineVersion) != p.bill.Version {
		p.report("version", RuleFormat, p.line(lineVersion))
	}
	if coding := p.line(lineCoding); coding != "1" {
		p.report("coding", RuleValue, coding)
	}
	p.dropAfterEarlyTrailer()
	if p.line(lineTrailer) != trailer {
		p.report("trailer", RuleRequired, p.line(lineTrailer))
	}
	if len(p.lines) > maxLines {
		p.report("lines", RuleTooMany, p.line(maxLines))
		p.lines = p.lines[:maxLines]
	}
	return nil
}

// dropAfterEarlyTrailer truncates the text at a trailer that comes too early, so that the trailer is not read as a value.
// The meaning of lines after it is undefined.
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
	p.report("iban", rule, raw)
}

// reserved checks that the ultimate creditor is empty: the standard reserves it for future use.
func (p *parser) reserved() {
	for i := lineUltimateCreditor; i < lineAmount; i++ {
		if p.line(i) != "" {
			p.report("ultimate_creditor", RuleMustBeEmpty, p.line(i))
			return
		}
	}
}

func (p *parser) money() {
	text := p.line(lineAmount)
	amount, rules := parseAmount(text)
	p.bill.Amount = amount
	for _, rule := range rules {
		p.report("amount", rule, text)
	}
	raw := p.line(lineCurrency)
	p.bill.Currency = strings.TrimSpace(raw)
	switch {
	case p.bill.Currency == "":
		p.report("currency", RuleRequired, "")
	case raw != "CHF" && raw != "EUR":
		p.report("currency", RuleValue, raw)
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
		p.reportFormatted("reference", checkQRReference(p.bill.Reference), raw, p.bill.Reference)
	case TypeSCOR:
		p.reportFormatted("reference", checkCreditorReference(p.bill.Reference), raw, p.bill.Reference)
	case TypeNON:
		if raw != "" {
			p.report("reference", RuleMustBeEmpty, raw)
		}
		p.bill.Reference = ""
	case "":
		p.report("reference_type", RuleRequired, "")
	default:
		p.report("reference_type", RuleValue, kind)
	}
	qrAccount := checkIBAN(p.bill.IBAN) == "" && isQRIBAN(p.bill.IBAN)
	if p.bill.Currency == "EUR" && (qrAccount || kind == TypeQRR) {
		p.report("currency", qrCurrencyRule(p.at), p.bill.Currency)
	}
	if checkIBAN(p.bill.IBAN) != "" {
		return // an invalid IBAN cannot be classified
	}
	if known := kind == TypeQRR || kind == TypeSCOR || kind == TypeNON; known && qrAccount != (kind == TypeQRR) {
		p.report("reference_type", RuleAccountType, kind)
	}
}

// reportFormatted reports the violated rule, if any, and otherwise whether the value differs from its normalised form.
func (p *parser) reportFormatted(element string, rule Rule, raw, clean string) {
	if rule == "" && raw != clean {
		rule = RuleFormat
	}
	p.report(element, rule, raw)
}

// permitted reports whether the guidelines 2.3 permit a character: printable ASCII, Latin-1, Latin Extended-A, four letters
// with a comma below, and the euro sign. The code contains no date, so that the newest set applies to every bill.
func permitted(r rune) bool {
	return r >= 0x20 && r <= 0x7e || r >= 0xa0 && r <= 0x17f || r >= 0x218 && r <= 0x21b || r == '€'
}

func onlyPermitted(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return !permitted(r) })
}

// countries are the alpha-2 codes of ISO 3166-1, and XK, which Swiss banks use for Kosovo.
const countries = " AD AE AF AG AI AL AM AO AQ AR AS AT AU AW AX AZ BA BB BD BE BF BG BH BI BJ BL BM BN BO BQ BR BS BT BV BW BY BZ " +
	"CA CC CD CF CG CH CI CK CL CM CN CO CR CU CV CW CX CY CZ DE DJ DK DM DO DZ EC EE EG EH ER ES ET FI FJ FK FM FO FR " +
	"GA GB GD GE GF GG GH GI GL GM GN GP GQ GR GS GT GU GW GY HK HM HN HR HT HU ID IE IL IM IN IO IQ IR IS IT JE JM JO JP " +
	"KE KG KH KI KM KN KP KR KW KY KZ LA LB LC LI LK LR LS LT LU LV LY MA MC MD ME MF MG MH MK ML MM MN MO MP MQ MR MS MT MU MV MW MX MY MZ " +
	"NA NC NE NF NG NI NL NO NP NR NU NZ OM PA PE PF PG PH PK PL PM PN PR PS PT PW PY QA RE RO RS RU RW " +
	"SA SB SC SD SE SG SH SI SJ SK SL SM SN SO SR SS ST SV SX SY SZ TC TD TF TG TH TJ TK TL TM TN TO TR TT TV TW TZ " +
	"UA UG UM US UY UZ VA VC VE VG VI VN VU WF WS XK YE YT ZA ZM ZW "

// Reason is the reason why no bill was read.
type Reason string

// The reasons, with their names in the API.
const (
	NoQRCode         Reason = "no_qr_code"
	NotSwissQRBill   Reason = "not_a_swiss_qr_bill"
	UnsupportedFile  Reason = "unsupported_file"
	DamagedFile      Reason = "damaged_file"
	EncryptedFile    Reason = "encrypted_file"
	PageOutOfRange   Reason = "page_out_of_range"
	TooLarge         Reason = "too_large"
	TooComplex       Reason = "too_complex"
	InvalidPayload   Reason = "invalid_payload"
	reasonOverloaded Reason = "overloaded"
)

// ErrBusy reports that all workers were busy. Callers should retry later.
var ErrBusy = &Error{Reason: reasonOverloaded}

// Error reports why no bill was read from a file.
type Error struct {
	Reason Reason
	// Format is the kind of file for UnsupportedFile, such as "HEIC".
	Format string
	// Findings are the violations for InvalidPayload, if any.
	Findings []Finding
	cause    error
}

func (e *Error) Error() string {
	text := string(e.Reason)
	if e.Format != "" {
		text += " (" + e.Format + ")"
	}
	if e.cause != nil {
		text += ": " + e.cause.Error()
	}
	return text
}

// Unwrap returns the cause of the Error.
func (e *Error) Unwrap() error { return e.cause }

// Is reports whether target is an Error with the same reason.
func (e *Error) Is(target error) bool {
	other, ok := target.(*Error)
	return ok && other.Reason == e.Reason
}

// ReasonOf returns the reason of an Error, or "" for other errors.
func ReasonOf(err error) Reason {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Reason
	}
	return ""
}

// errorf returns an Error with a formatted cause.
func errorf(reason Reason, format string, args ...any) *Error {
	return &Error{Reason: reason, cause: fmt.Errorf(format, args...)}
}
