package qrbill

import (
	"regexp"
	"strings"
	"unicode/utf8"
)

// Maximum lengths of the elements of an address, in characters.
const (
	maxName    = 70
	maxStreet  = 70
	maxNumber  = 16
	maxZip     = 16
	maxCity    = 35
	maxCountry = 2
)

// party parses the seven lines of an address, beginning at line first. For a debtor with any line, the same elements are
// required as for a creditor.
func (p *parser) party(element string, first int) Party {
	raw := p.line
	kind := raw(first)
	value := func(i int) string { return strings.TrimSpace(raw(first + i)) }
	party := Party{Name: value(1), Country: strings.ToUpper(value(6))}
	p.field(element+".name", raw(first+1), maxName, true)

	switch kind {
	case "K":
		p.report(element+".address_type", NoteCombinedAddress, kind)
		p.combined(element, first, &party)
	default:
		switch kind {
		case "S":
		case "":
			p.report(element+".address_type", RuleRequired, "")
		default:
			p.report(element+".address_type", RuleValue, kind)
		}
		party.Address = strings.TrimSpace(value(2) + " " + value(3))
		party.Zip, party.City = value(4), value(5)
		p.field(element+".street", raw(first+2), maxStreet, false)
		p.field(element+".building_number", raw(first+3), maxNumber, false)
		p.field(element+".zip", raw(first+4), maxZip, true)
		p.field(element+".city", raw(first+5), maxCity, true)
	}

	country := raw(first + 6)
	switch {
	case country == "":
		p.report(element+".country", RuleRequired, "")
	case !strings.Contains(countries, " "+country+" ") || len(country) != maxCountry:
		p.report(element+".country", RuleCountry, country)
	}
	return party
}

// field checks that a text is present if required, not too long, and consists of permitted characters.
func (p *parser) field(element, value string, maxLength int, required bool) {
	switch {
	case required && strings.TrimSpace(value) == "":
		p.report(element, RuleRequired, value)
	case utf8.RuneCountInString(value) > maxLength:
		p.report(element, RuleLength, value)
	}
	if !onlyPermitted(value) {
		p.report(element, RuleCharacters, value)
	}
}

// combined parses an address of type K: a line for the street, and one for postcode and town.
func (p *parser) combined(element string, first int, party *Party) {
	line1, line2 := p.line(first+2), p.line(first+3)
	zip, city := p.line(first+4), p.line(first+5)
	p.field(element+".address_line_1", line1, maxStreet, false)
	p.field(element+".address_line_2", line2, maxStreet, true)
	party.Lines = []string{line1, line2}
	party.Address = strings.TrimSpace(line1)
	if zip != "" {
		p.report(element+".zip", RuleMustBeEmpty, zip)
	}
	if city != "" {
		p.report(element+".city", RuleMustBeEmpty, city)
	}
	if zip, city = strings.TrimSpace(zip), strings.TrimSpace(city); zip != "" || city != "" {
		party.Zip, party.City = zip, city
		return
	}
	if strings.TrimSpace(line2) == "" {
		if z, c := splitTown(line1, party.Country); z != "" {
			party.Address, party.Zip, party.City = "", z, c
		}
		return
	}
	party.Zip, party.City = splitTown(line2, party.Country)
}

var (
	townPrefix = regexp.MustCompile(`^(?:CH|D|FL|LI|F|A|I)-\s*(\d)`)
	townLine   = regexp.MustCompile(`^(\d{4,5}) (.+)$`)
)

// splitTown splits a line such as "9490 Vaduz" into postcode and town. A line that does not clearly begin with a postcode,
// such as "London SW1A 2AA", is returned as the town.
func splitTown(line, country string) (zip, city string) {
	line = strings.Join(strings.Fields(line), " ")
	match := townLine.FindStringSubmatch(townPrefix.ReplaceAllString(line, "$1"))
	if match == nil || (len(match[1]) != 4 && (country == "CH" || country == "LI")) {
		return "", line
	}
	return match[1], match[2]
}
