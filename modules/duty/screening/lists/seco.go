package lists

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"kontor/modules/kit/names"
)

// target is a target of SECO's list, with its newest modification.
type target struct {
	entry    Entry
	places   []string // ids of its addresses
	modified bool     // a modification was found
	newest   string   // its date, ISO 8601
	delisted bool
}

// readSECO reads the whole list of SECO. Targets stay in the file after they were removed from the list: the modification with the newest
// date decides, wherever it stands. Of modifications of one day the first decides, because the file begins with the newest.
// Modifications inside a target have copies of what was added and removed, which are no targets, and whose names may be former ones.
func readSECO(w walker, add func(Entry) error) error {
	programs := map[string]string{}  // by id of a sanctions set
	countries := map[string]string{} // by id of a place
	targets := map[string]*target{}
	var order []string
	kept := 0
	keep := func(n, around *node) {
		t := readTarget(n, around)
		kept += t.entry.size() + sizeOf(t.places)
		id := t.entry.SourceID
		before, known := targets[id]
		if !known {
			order = append(order, id)
		}
		if !known || t.newest > before.newest {
			targets[id] = t
		}
	}
	err := w.each(map[string]bool{"sanctions-program": true, "target": true, "modification": true, "place": true}, func(n *node) error {
		switch n.XMLName.Local {
		case "sanctions-program":
			readProgram(n, programs)
		case "place":
			n.each("country", func(c *node) { countries[n.attr("ssid")] = c.attr("iso-code") })
		case "target":
			keep(n, nil)
		default:
			n.each("target", func(inner *node) { keep(inner, n) })
		}
		if max(len(targets), len(countries), len(programs)) > maxJoinedEntries || kept > maxJoined {
			return ErrTooLarge
		}
		return nil
	})
	if err != nil {
		return err
	}
	for _, id := range order {
		t := targets[id]
		if t.delisted {
			continue
		}
		for i, set := range t.entry.Programs {
			t.entry.Programs[i] = cmp.Or(programs[set], set)
		}
		for _, place := range t.places {
			t.entry.Countries = appendCountry(t.entry.Countries, countries[place])
		}
		if err := add(t.entry); err != nil {
			return err
		}
	}
	return nil
}

// readProgram keeps the English key of a program for each of its sets.
func readProgram(n *node, programs map[string]string) {
	key := ""
	n.each("program-key", func(k *node) {
		if key == "" || k.attr("lang") == "eng" {
			key = strings.TrimSpace(k.Text)
		}
	})
	n.each("sanctions-set", func(s *node) { programs[s.attr("ssid")] = key })
}

// subjects are the elements that describe a target.
var subjects = []struct {
	element string
	kind    names.Kind
}{{"individual", names.Person}, {"entity", names.Organisation}, {"object", names.Unknown}}

// readTarget reads a target. around is the modification that it is part of, or nil.
func readTarget(n, around *node) *target {
	t := &target{entry: Entry{SourceID: n.attr("ssid")}}
	apply := func(m *node) {
		date := cmp.Or(m.attr("effective-date"), m.attr("enactment-date"), m.attr("publication-date"))
		if !t.modified || date > t.newest {
			t.modified, t.newest, t.delisted = true, date, m.attr("modification-type") == "de-listed"
		}
	}
	n.cut("modification", apply)
	if around != nil {
		apply(around)
	}
	n.each("sanctions-set-id", func(s *node) { t.entry.Programs = append(t.entry.Programs, strings.TrimSpace(s.Text)) })
	for _, subject := range subjects {
		n.each(subject.element, func(found *node) {
			t.entry.Kind = subject.kind
			t.identities(found)
		})
	}
	return t
}

// identities adds the names, dates and countries of an individual, an entity or an object. The names of the main identity come first.
func (t *target) identities(subject *node) {
	e := &t.entry
	var main []string
	subject.each("identity", func(identity *node) {
		isMain := identity.attr("main") != "false"
		identity.each("name", func(n *node) {
			if isMain && n.attr("name-type") == "primary-name" {
				main = append(main, spellings(n)...)
				return
			}
			e.Names = append(e.Names, spellings(n)...)
		})
	})
	e.Names = append(main, e.Names...)
	subject.each("day-month-year", func(b *node) {
		if isGregorian(b.attr("calendar")) {
			e.Births = appendDate(e.Births, strings.TrimRight(b.attr("year")+"-"+pad(b.attr("month"))+"-"+pad(b.attr("day")), "-"))
		}
	})
	for _, element := range []string{"nationality", "address"} {
		subject.each(element, func(n *node) {
			n.each("country", func(c *node) { e.Countries = appendCountry(e.Countries, c.attr("iso-code")) })
		})
	}
	subject.each("address", func(a *node) { t.places = append(t.places, a.attr("place-id")) })
}

// spellings returns a name, and the name with each other spelling of its parts.
func spellings(n *node) []string {
	const most = 50 // parts of a name, and spellings of a part
	type piece struct {
		order    int
		value    string
		variants []string
	}
	var pieces []piece
	n.each("name-part", func(p *node) {
		order, _ := strconv.Atoi(p.attr("order")) // parts without a number come first
		one := piece{order: order, value: p.text("value")}
		p.each("spelling-variant", func(v *node) {
			if len(one.variants) < most {
				one.variants = append(one.variants, strings.TrimSpace(v.Text))
			}
		})
		if len(pieces) < most {
			pieces = append(pieces, one)
		}
	})
	slices.SortStableFunc(pieces, func(a, b piece) int { return cmp.Compare(a.order, b.order) })
	write := func(variant int) (string, bool) {
		var b strings.Builder
		differs := false
		for _, p := range pieces {
			value := p.value
			if variant < len(p.variants) {
				value, differs = p.variants[variant], true
			}
			b.WriteString(value + " ")
		}
		return strings.TrimSpace(b.String()), differs
	}
	main, _ := write(most)
	all := []string{main}
	for variant := range most {
		name, differs := write(variant)
		if !differs {
			break
		}
		all = append(all, name)
	}
	return all
}

func pad(digits string) string {
	if len(digits) == 1 {
		return "0" + digits
	}
	return digits
}
