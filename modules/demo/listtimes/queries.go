package main

import (
	"fmt"
	"net/url"
)

// texts are searched in lists with the parameter q: words of many records of a data set, of some, of one, and of none.
var texts = []string{"z", "muster", "muster 7", "customer100.example", "quaternion"}

// queries returns the query strings to measure. first is the page without parameters.
func (m *measurement) queries(first page, fields []string, text bool) []string {
	places := []string{"limit=-1", fmt.Sprintf("offset=%d", first.Total/2), fmt.Sprintf("offset=%d", first.Total*3/4), fmt.Sprintf("offset=%d", max(0, first.Total-5))}
	var sorts, distinct, searches []string
	for _, field := range fields {
		sorts = append(sorts, "sort="+field, "sort=-"+field)
		distinct = append(distinct, "distinct="+field)
		searches = append(searches, searchesOf(first.Data, field)...)
	}
	if text {
		for _, words := range texts {
			searches = append(searches, "q="+url.QueryEscape(words))
		}
	}
	var all []string
	if first.NextCursor != "" {
		all = append(all, "cursor="+url.QueryEscape(first.NextCursor))
	}
	for _, list := range [][]string{places, sorts, distinct, searches} {
		all = append(all, list...)
	}
	if !m.combinations {
		return all
	}
	n := 0
	pairs := func(ones, others []string) {
		for _, one := range ones {
			for _, other := range others {
				if n++; n%max(1, m.step) == 0 {
					all = append(all, one+"&"+other)
				}
			}
		}
	}
	pairs(sorts, places)
	pairs(distinct, places)
	pairs(searches, places)
	pairs(sorts, distinct)
	pairs(searches, sorts)
	pairs(searches, distinct)
	for i := range searches {
		pairs(searches[i:i+1], searches[i+1:])
	}
	return all
}

// searchesOf returns searches for a field: for a value of the first rows, a part of it, a range, what is missing and what is there.
func searchesOf(rows []map[string]any, field string) []string {
	search := "search." + field + "="
	searches := []string{search + "null"}
	switch value := sample(rows, field).(type) {
	case string:
		searches = append(searches, search+url.QueryEscape(value))
		if len(value) > 3 {
			searches = append(searches, search+url.QueryEscape("*"+value[1:3]+"*"))
		}
		if len(value) >= len("2006-01-02T") && value[4] == '-' {
			searches = append(searches, search+value[:10], search+"2020-01-01..", search+".."+value[:10])
		} else {
			searches = append(searches, search+"*")
		}
	case bool:
		searches = append(searches, search+"true", search+"false", search+"true,false")
	}
	return searches
}

// sample returns a value of a field in some rows, or nil.
func sample(rows []map[string]any, field string) any {
	for _, row := range rows {
		if value := row[field]; value != nil && value != "" {
			return value
		}
	}
	return nil
}
