package lists

import (
	"bufio"
	"cmp"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"strings"

	"golang.org/x/text/encoding/charmap"

	"kontor/modules/kit/names"
)

// readXML reads the list that the name of the root stands for.
func readXML(b *bufio.Reader, limit *budget, add func(Entry) error) (Info, error) {
	d := xml.NewDecoder(b)
	d.CharsetReader = charset
	for {
		token, err := d.Token()
		if err != nil {
			return Info{}, failure(err)
		}
		if err := rejectDocumentType(token); err != nil {
			return Info{}, err
		}
		root, isElement := token.(xml.StartElement)
		if !isElement {
			continue
		}
		w := walker{d, limit}
		switch root.Name.Local {
		case "swiss-sanctions-list":
			if kind := attribute(root, "list-type"); kind != "" && kind != "whole-list" && kind != "full-list" {
				return Info{}, ErrDelta
			}
			return counted(add, SECO, func(c *counter) (string, error) { return attribute(root, "date"), readSECO(w, c.add) })
		case "CONSOLIDATED_LIST":
			return counted(add, UN, func(c *counter) (string, error) { return attribute(root, "dateGenerated"), readUN(w, c.add) })
		case "export":
			return counted(add, EU, func(c *counter) (string, error) { return attribute(root, "generationDate"), readEU(w, c.add) })
		default:
			return Info{}, ErrUnknownFormat
		}
	}
}

// charset reads the encodings that files declare besides UTF-8.
func charset(label string, r io.Reader) (io.Reader, error) {
	switch strings.ToLower(label) {
	case "us-ascii", "iso-8859-1", "windows-1252":
		return charmap.Windows1252.NewDecoder().Reader(r), nil
	default:
		return nil, fmt.Errorf("the encoding %q is not supported", label)
	}
}

// rejectDocumentType rejects declarations, of which entities are a part.
func rejectDocumentType(token xml.Token) error {
	if _, isDirective := token.(xml.Directive); isDirective {
		return fmt.Errorf("%w: a document type is not accepted", ErrMalformed)
	}
	return nil
}

func attribute(e xml.StartElement, name string) string {
	for _, a := range e.Attr {
		if a.Name.Local == name {
			return a.Value
		}
	}
	return ""
}

// node is an element with all that it holds. It is no larger than an entry may be.
type node struct {
	XMLName  xml.Name
	Attrs    []xml.Attr `xml:",any,attr"`
	Text     string     `xml:",chardata"`
	Children []node     `xml:",any"`
}

func (n *node) attr(name string) string {
	return attribute(xml.StartElement{Attr: n.Attrs}, name)
}

// each passes the elements of a name, at any depth, in their order.
func (n *node) each(name string, f func(*node)) {
	for i := range n.Children {
		if n.Children[i].XMLName.Local == name {
			f(&n.Children[i])
		}
		n.Children[i].each(name, f)
	}
}

// cut removes the elements of a name, at any depth but not inside each other, and passes them in their order.
func (n *node) cut(name string, f func(*node)) {
	kept := n.Children[:0]
	for _, child := range n.Children {
		if child.XMLName.Local == name {
			f(&child)
			continue
		}
		child.cut(name, f)
		kept = append(kept, child)
	}
	n.Children = kept
}

// text returns the text of the first child with a name.
func (n *node) text(name string) string {
	for i := range n.Children {
		if n.Children[i].XMLName.Local == name {
			return strings.TrimSpace(n.Children[i].Text)
		}
	}
	return ""
}

// walker reads elements one by one.
type walker struct {
	d     *xml.Decoder
	limit *budget
}

// each reads the file to its end and passes the elements that are wanted. Others are opened, so that nested ones are found.
func (w walker) each(wanted map[string]bool, f func(*node) error) error {
	for depth := 0; ; {
		w.limit.next()
		token, err := w.d.Token()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return failure(err)
		}
		if err := rejectDocumentType(token); err != nil {
			return err
		}
		start, isElement := token.(xml.StartElement)
		if !isElement || !wanted[start.Name.Local] {
			if depth += levels(token); depth > maxDepth {
				return ErrTooLarge // the decoder keeps all elements that are open
			}
			continue
		}
		var n node
		if err := w.d.DecodeElement(&n, &start); err != nil {
			return failure(err)
		}
		n.XMLName, n.Attrs = start.Name, start.Attr
		if err := f(&n); err != nil {
			return err
		}
	}
}

// levels returns by how many levels a token goes deeper.
func levels(token xml.Token) int {
	switch token.(type) {
	case xml.StartElement:
		return 1
	case xml.EndElement:
		return -1
	}
	return 0
}

// readUN reads the consolidated list of the United Nations.
func readUN(w walker, add func(Entry) error) error {
	return w.each(map[string]bool{"INDIVIDUAL": true, "ENTITY": true}, func(n *node) error {
		e := Entry{SourceID: cmp.Or(n.text("REFERENCE_NUMBER"), n.text("DATAID")), Kind: names.Organisation, Programs: []string{n.text("UN_LIST_TYPE")}}
		if n.XMLName.Local == "INDIVIDUAL" {
			e.Kind = names.Person
		}
		parts := []string{n.text("FIRST_NAME"), n.text("SECOND_NAME"), n.text("THIRD_NAME"), n.text("FOURTH_NAME")}
		e.Names = []string{strings.Join(parts, " "), n.text("NAME_ORIGINAL_SCRIPT")}
		n.each("ALIAS_NAME", func(a *node) { e.Names = append(e.Names, a.Text) })
		n.each("INDIVIDUAL_DATE_OF_BIRTH", func(b *node) {
			e.Births = appendDate(e.Births, cmp.Or(b.text("DATE"), b.text("YEAR")))
			e.Births = appendYears(e.Births, b.text("FROM_YEAR"), b.text("TO_YEAR"))
		})
		n.each("ENTITY_ADDRESS", func(a *node) { e.Countries = appendCountry(e.Countries, a.text("COUNTRY")) })
		n.each("NATIONALITY", func(c *node) {
			c.each("VALUE", func(v *node) { e.Countries = appendCountry(e.Countries, v.Text) })
		})
		return add(e)
	})
}

// readEU reads the financial sanctions of the European Union.
func readEU(w walker, add func(Entry) error) error {
	return w.each(map[string]bool{"sanctionEntity": true}, func(n *node) error {
		e := Entry{SourceID: cmp.Or(n.attr("euReferenceNumber"), n.attr("logicalId"))}
		n.each("subjectType", func(s *node) {
			switch {
			case s.attr("code") == "person" || s.attr("classificationCode") == "P":
				e.Kind = names.Person
			case s.attr("code") == "enterprise" || s.attr("classificationCode") == "E":
				e.Kind = names.Organisation
			}
		})
		n.each("nameAlias", func(a *node) {
			e.Names = append(e.Names, cmp.Or(a.attr("wholeName"), a.attr("firstName")+" "+a.attr("middleName")+" "+a.attr("lastName")))
		})
		n.each("birthdate", func(b *node) {
			if isGregorian(b.attr("calendarType")) {
				e.Births = appendDate(e.Births, cmp.Or(b.attr("birthdate"), b.attr("year")))
				e.Births = appendYears(e.Births, b.attr("yearRangeFrom"), b.attr("yearRangeTo"))
			}
		})
		for _, name := range []string{"citizenship", "address"} {
			n.each(name, func(c *node) { e.Countries = appendCountry(e.Countries, c.attr("countryIso2Code")) })
		}
		n.each("regulation", func(r *node) { e.Programs = append(e.Programs, r.attr("programme")) })
		return add(e)
	})
}
