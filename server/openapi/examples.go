package openapi

import (
	"fmt"
	"slices"
	"strings"
)

// Ids and times of the examples, in the form of real ones.
const (
	exampleID   = "0193a7c4-5e2f-7b1a-9c3d-8f6e2a4b7c10"
	exampleTime = "2026-01-31T08:15:30.123Z"
)

// byName contains examples for members by name. The tag example of a field overrides them.
var byName = map[string]any{
	"first_name": "Anna", "last_name": "Keller", "email": "anna.keller@example.ch", "phone": "+41446681800",
	"nationality": "CHE", "country": "CHE", "street": "Bahnhofstrasse 1", "city": "Zürich", "postal_code": "8001", "zip": "8001",
	"date_of_birth": "1984-05-17", "date_of_death": "2025-11-02", "expiry_date": "2031-04-30",
	"company": "Keller Holzbau AG", "language": "de", "otp": "048213", "password": "a long and private sentence",
	"old_password": "the sentence of last year", "access_token": "eyJhbGciOiJFZERTQSIsInR5cCI6IkpXVCJ9.eyJzdWIiOiIwMTkzYTdjNCJ9.c2ln",
	"refresh_token": "kr_5oW3pQ9vX2", "token_type": "Bearer", "expires_in": 3600,
	"credential_type": "email", "credential_value": "anna.keller@example.ch",
	"terms_accepted": true, "privacy_policy_accepted": true, "validated": true, "active": true,
	"name": "Anna Keller", "description": "Signs the account agreement", "title": "Sign the account agreement",
	"message": "Done.", "reason": "The documents are complete.", "content": "Good morning, the documents have arrived.",
	"link_url": "/customers/" + exampleID, "link_text": "Open the customer", "device_id": "office-laptop",
	"rec_type": "customers", "permission": "read", "endpoint": "GET /v1/customers/{id}", "method": "GET", "path": "/v1/customers/{id}",
	"per_minute": 600, "summary": "Get a customer", "tag": "Customers", "subject": "Your code", "text": "Your code is 048213.",
	"to": "anna.keller@example.ch", "iban": "CH4431999123000889012", "currency": "CHF", "reference": "210000000003139471430009017",
	"amount": 1949.75, "address": "Rue du Lac 1268/2/22", "number": "X1234567", "key": "kontor_0193a7c4_Zk3vVf0s9w",
	"hash_id": "b1946ac92492d2347c6235b4d2611184", "total": 1, "total_unfiltered": 1, "has_more": false, "weight": 1,
	"url": "/v1/avatars/3f9c7d1e.jpg", "thumbnail_url": "/v1/avatars/3f9c7d1e-128.jpg", "theme": "system",
	"overall_status": "healthy", "action": "customers.create", "page": 1, "attempts": 1, "unreadCount": 0,
}

// ids lists the members that contain ids of records, in addition to those that end in _id or Id.
var ids = []string{"id", "created_by", "modified_by", "changed_by", "deleted_by", "revoked_by", "participants", "readBy", "user_ids"}

// suggest sets the format and the example of a member by its name, unless its tags set them.
func suggest(s *Schema, name string) {
	leaf := s
	if s.Kind() == "array" && s.Items != nil {
		leaf = s.Items
	}
	if isID(name) && leaf.Kind() == "string" && leaf.Format == "" && len(leaf.Enum) == 0 {
		leaf.Format = "uuid"
	}
	if name == "email" && leaf.Format == "" {
		leaf.Format = "email"
	}
	if leaf.Format == "-" {
		leaf.Format = ""
	}
	if example, known := byName[name]; known && len(s.Examples) == 0 && len(s.Enum) == 0 && leaf == s && fits(s.Kind(), example) {
		s.Examples = []any{example}
	}
}

// isID reports whether a member or parameter with a name contains the id of a record.
func isID(name string) bool {
	return slices.Contains(ids, name) || strings.HasSuffix(name, "_id") || strings.HasSuffix(name, "Id")
}

func fits(kind string, example any) bool {
	switch example.(type) {
	case string:
		return kind == "string"
	case bool:
		return kind == "boolean"
	case int:
		return kind == "integer" || kind == "number"
	case float64:
		return kind == "number"
	}
	return false
}

// byFormat contains examples of the formats.
var byFormat = map[string]string{
	"uuid": exampleID, "date-time": exampleTime, "date": "2026-01-31", "email": "anna.keller@example.ch", "uri-reference": "/customers",
}

// maxDepth bounds the examples of recursive types.
const maxDepth = 8

// exampleAt returns an example of a schema, built from those of its members.
func (t *types) exampleAt(s *Schema, depth int) any {
	if len(s.Examples) > 0 {
		return s.Examples[0]
	}
	s = t.resolve(s)
	switch {
	case len(s.Examples) > 0:
		return s.Examples[0]
	case len(s.Enum) > 0:
		return s.Enum[0]
	case len(s.OneOf) > 0:
		return t.exampleAt(s.OneOf[0], depth)
	case len(s.AnyOf) > 0:
		return t.exampleAt(s.AnyOf[0], depth)
	}
	switch s.Kind() {
	case "object":
		return t.exampleObject(s, depth)
	case "array":
		if depth > maxDepth {
			return []any{}
		}
		return []any{t.exampleAt(s.Items, depth+1)}
	case "integer", "number":
		return 1
	case "boolean":
		return true
	case "string":
		if example, ok := byFormat[s.Format]; ok {
			return example
		}
		return "text"
	}
	return Map[any]{}
}

func (t *types) exampleObject(s *Schema, depth int) any {
	object := Map[any]{}
	if values, typed := s.AdditionalProperties.(*Schema); typed {
		name := any("member")
		if s.PropertyNames != nil {
			name = t.exampleAt(s.PropertyNames, depth+1)
		}
		object.Set(fmt.Sprint(name), t.exampleAt(values, depth+1))
		return object
	}
	if s.AdditionalProperties == true {
		object.Set("language", "de")
		return object
	}
	if depth > maxDepth {
		return object
	}
	for _, member := range s.Properties {
		if member.Value.unusual {
			continue
		}
		object.Set(member.Name, t.exampleAt(member.Value, depth+1))
	}
	return object
}
