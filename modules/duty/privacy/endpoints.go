package privacy

import (
	"net/http"

	"kontor/modules/kit/personal"
	"kontor/server/access"
	"kontor/server/apierr"
	"kontor/server/endpoint"
	"kontor/server/ratelimit"
)

// person describes the rows of a kind of person.
type person struct {
	kind    personal.Kind
	path    string
	recType access.RecordType
	missing apierr.Kind
	roles   []string // may export
	subject access.Subject
}

var persons = []person{
	{personal.Customer, "/v1/customers/{id}", access.Customers, apierr.CustomerNotFound, []string{access.Advisor, access.Customer}, access.Subject{}},
	{personal.User, "/v1/users/{id}", access.Users, apierr.UserNotFound, []string{access.Advisor, access.Customer}, access.UserIn("id")},
	{personal.Persona, "/v1/personas/{persona_id}", access.Personas, apierr.PersonaNotFound, []string{access.Advisor}, access.PersonaIn("persona_id")},
}

// recordTypes are the types of the records of persons.
var recordTypes = func() map[personal.Kind]access.RecordType {
	byKind := map[personal.Kind]access.RecordType{}
	for _, p := range persons {
		byKind[p.kind] = p.recType
	}
	return byKind
}()

// Endpoints returns the rows of the module.
func (s *Service) Endpoints() []endpoint.Endpoint {
	customer := access.On(access.Customers, access.Read)
	remove := access.On(access.Customers, access.Delete)
	advisors := []string{access.Advisor}
	rows := []endpoint.Endpoint{
		{Name: "privacy.relationship.get", Method: http.MethodGet, Path: "/v1/customers/{id}/relationship", Access: customer, Roles: advisors,
			Summary: "Get the business relationship with a customer, and until when its data must be kept.",
			Faults:  []apierr.Kind{apierr.CustomerNotFound}, Handle: endpoint.JSON(http.StatusOK, s.GetRelationship)},
		{Name: "privacy.relationship.set", Method: http.MethodPut, Path: "/v1/customers/{id}/relationship",
			Access: access.On(access.Customers, access.Update), Assurance: endpoint.Fresh, Roles: advisors, Summary: "Record the end of the business relationship with a customer.",
			Faults: []apierr.Kind{apierr.CustomerNotFound, apierr.RecordErased, apierr.SecondPersonRequired, apierr.SelfVerification, apierr.PreconditionFailed},
			Doc: endpoint.Doc{Answers: []endpoint.Answer{
				{Status: http.StatusOK, Body: Relationship{}},
				{Status: http.StatusAccepted, Says: "The end is far in the past. It counts when a second person sends the same.", Body: Relationship{}},
			}},
			Handle: endpoint.JSON(http.StatusOK, s.SetRelationship)},
		{Name: "privacy.hold.get", Method: http.MethodGet, Path: "/v1/customers/{id}/legal-hold", Access: customer,
			Summary: "Get the legal hold of a customer.",
			Faults:  []apierr.Kind{apierr.CustomerNotFound, apierr.HoldNotFound}, Handle: endpoint.JSON(http.StatusOK, s.GetHold)},
		{Name: "privacy.hold.set", Method: http.MethodPut, Path: "/v1/customers/{id}/legal-hold", Access: remove, Assurance: endpoint.SecondFactor,
			Summary: "Place a customer under a legal hold: its data cannot be erased.",
			Faults:  []apierr.Kind{apierr.CustomerNotFound, apierr.RecordErased}, Handle: endpoint.JSON(http.StatusOK, s.SetHold)},
		{Name: "privacy.hold.remove", Method: http.MethodDelete, Path: "/v1/customers/{id}/legal-hold", Access: remove, Assurance: endpoint.SecondFactor,
			Summary: "Remove the legal hold of a customer.",
			Faults:  []apierr.Kind{apierr.CustomerNotFound, apierr.HoldNotFound}, Handle: endpoint.JSON(http.StatusOK, s.RemoveHold)},
		{Name: "privacy.erasures.list", Method: http.MethodGet, Path: "/v1/erasures", Access: remove, Summary: "List erasures.",
			Doc: endpoint.Doc{Search: erasureList.Search()}, Handle: endpoint.JSON(http.StatusOK, s.List)},
		{Name: "privacy.erasures.due", Method: http.MethodGet, Path: "/v1/erasures/due", Access: remove,
			Summary: "List customers whose retention period has ended and whose data may be erased.",
			Doc:     endpoint.Doc{Search: dueList.Search()}, Handle: endpoint.JSON(http.StatusOK, s.ListDue)},
		{Name: "privacy.erasures.get", Method: http.MethodGet, Path: "/v1/erasures/{id}", Access: remove, Summary: "Get an erasure.",
			Faults: []apierr.Kind{apierr.ErasureNotFound}, Handle: endpoint.JSON(http.StatusOK, s.Get)},
	}
	for _, p := range persons {
		rows = append(rows, s.exportRow(p), s.reportRow(p), s.erasureRow(p))
	}
	for i := range rows {
		rows[i].Tag, rows[i].Limit = "Privacy", ratelimit.Private
	}
	return rows
}

func (s *Service) exportRow(p person) endpoint.Endpoint {
	return endpoint.Endpoint{
		Name: "privacy.export_" + string(p.kind), Method: http.MethodGet, Path: p.path + "/export", Subject: p.subject,
		Access: access.On(p.recType, access.Read), Assurance: endpoint.SecondFactor, Roles: p.roles,
		Summary: "Export what the caller may read about a " + string(p.kind) + ", as one JSON document.",
		Faults:  []apierr.Kind{p.missing},
		Doc: endpoint.Doc{
			Description: "The answer is streamed. A document that ends early is not valid JSON. Each row is one that the caller could read at its own address, too. Each caller can have one export at a time.",
			Answers:     []endpoint.Answer{{Status: http.StatusOK, Says: "The document.", Body: Export{}}},
			Sends:       []string{"Content-Disposition"},
		},
		Handle: endpoint.Raw(nil, s.send(p.kind, s.exportDocument())),
	}
}

// reportRow has no roles: the right to call it is for the data-protection officer of the bank.
func (s *Service) reportRow(p person) endpoint.Endpoint {
	return endpoint.Endpoint{
		Name: "privacy.report_" + string(p.kind), Method: http.MethodGet, Path: p.path + "/report", Subject: p.subject,
		Access: access.On(p.recType, access.ReadAll), Assurance: endpoint.SecondFactor, PeopleOnly: true,
		Summary: "Report all that is held about a " + string(p.kind) + ", for the data-protection officer.",
		Faults:  []apierr.Kind{p.missing},
		Doc: endpoint.Doc{
			Description: "The form is that of the export, with the rows that only staff may read. The officer decides what of it the person gets. It contains no codes, keys or passwords.",
			Answers:     []endpoint.Answer{{Status: http.StatusOK, Says: "The document.", Body: Export{}}},
			Sends:       []string{"Content-Disposition"},
		},
		Handle: endpoint.Raw(nil, s.send(p.kind, s.reportDocument())),
	}
}

func (s *Service) erasureRow(p person) endpoint.Endpoint {
	faults := []apierr.Kind{p.missing}
	switch p.kind {
	case personal.Customer:
		faults = append(faults, apierr.Retained, apierr.RelationshipOpen, apierr.OnHold)
	case personal.User:
		faults = append(faults, apierr.LastAdministrator, apierr.SelfErasure, apierr.HasCustomers, apierr.OnHold)
	case personal.Persona:
		faults = append(faults, apierr.OwnPersona, apierr.OnHold)
	}
	handle := endpoint.JSON(http.StatusOK, s.erase(p.kind))
	if p.kind == personal.Persona {
		handle = endpoint.JSON(http.StatusOK, s.erasePersona)
	}
	return endpoint.Endpoint{
		Name: "privacy.erase_" + string(p.kind), Method: http.MethodPost, Path: p.path + "/erasure", Subject: p.subject, OwnTime: true,
		Access: access.On(p.recType, access.Delete), Assurance: endpoint.SecondFactor, Summary: "Erase the personal data of a " + string(p.kind) + ". This cannot be undone.",
		Faults: faults,
		Doc: endpoint.Doc{Answers: []endpoint.Answer{
			{Status: http.StatusOK, Says: "The data are erased, also from the files. A repeated request returns the first erasure.", Body: Erasure{}},
			{Status: http.StatusAccepted, Says: "The erasure has begun and continues.", Body: Erasure{}},
		}},
		Handle: handle,
	}
}
