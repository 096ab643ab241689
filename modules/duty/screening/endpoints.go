package screening

import (
	"context"
	"net/http"

	"kontor/modules/kit/list"
	"kontor/server/access"
	"kontor/server/apierr"
	"kontor/server/endpoint"
	"kontor/server/ratelimit"
)

// listForm is the form of an upload, for the API document.
type listForm struct {
	File []byte `json:"file" required:"true" doc:"The list, recognised by its content: XML of SECO, the United Nations or the European Union, a zip archive with sdn.csv, alt.csv and add.csv of OFAC, targets.simple.csv or FollowTheMoney lines of OpenSanctions. At most 512 MiB."`
	Name string `json:"name" required:"true" maxLength:"100" example:"SECO" doc:"A list of the same name is replaced."`
}

const uploadNotes = "The file is read as a stream. The former list of the name stays in force until the new one is complete, and after every error. The answer says " +
	"what was added, changed and removed. At most 50 lists can be loaded; one upload at a time is accepted."

const checkNotes = "A score says how alike two names are, and not whether they belong to the same person. A match is no decision. Nothing is stored but an audit entry, " +
	"which has the name encrypted."

// Endpoints returns the rows of the module. Lists are for administrators; checks are for staff who review customers.
func (s *Service) Endpoints() []endpoint.Endpoint {
	rows := []endpoint.Endpoint{
		{Name: "screening.load", Method: http.MethodPost, Path: "/v1/screening/lists", Assurance: endpoint.Fresh,
			Subject: access.NoSubject("lists give no rights"), MaxBody: maxUpload + formOverhead, OwnTime: true,
			Summary: "Load a list, or replace the one of the same name.",
			Faults: []apierr.Kind{apierr.InvalidInput, apierr.ScreeningTooMany, apierr.ScreeningReplaced, apierr.PayloadTooLarge, apierr.RequestTimeout,
				apierr.TooManyAtOnce},
			Doc:    endpoint.Doc{Body: listForm{}, Description: uploadNotes},
			Handle: endpoint.Streamed(http.StatusCreated, []string{formMedia}, s.upload)},
		{Name: "screening.lists", Method: http.MethodGet, Path: "/v1/screening/lists", Summary: "List the lists that are in force.",
			Doc: endpoint.Doc{Search: listOfLists.Search()}, Handle: endpoint.JSON(http.StatusOK, s.page)},
		{Name: "screening.drop", Method: http.MethodDelete, Path: "/v1/screening/lists/{id}", Assurance: endpoint.Fresh,
			Subject: access.NoSubject("lists give no rights"), Summary: "Drop a list.",
			Faults: []apierr.Kind{apierr.ScreeningListNotFound}, Handle: endpoint.JSON(http.StatusOK, s.drop)},
		{Name: "screening.check", Method: http.MethodPost, Path: "/v1/screening/check", Roles: []string{access.Advisor},
			Subject: access.NoSubject("it changes nothing"), Summary: "Compare a name with the lists.", Doc: endpoint.Doc{Description: checkNotes},
			Faults: []apierr.Kind{apierr.Unavailable}, Handle: endpoint.JSON(http.StatusOK, s.Check)},
	}
	for i := range rows {
		rows[i].Tag, rows[i].Limit, rows[i].Access = "Screening", ratelimit.Private, access.SignedIn
	}
	return rows
}

type listInput struct {
	Query list.Params `query:"*"`
}

func (s *Service) page(ctx context.Context, in listInput) (list.Page[List], error) {
	return s.Lists(ctx, in.Query)
}

// Lists returns a page of the lists.
func (s *Service) Lists(ctx context.Context, query list.Params) (list.Page[List], error) {
	return listOfLists.Page(ctx, s.db, query)
}

type oneInput struct {
	ID string `path:"id"`
}

func (s *Service) drop(ctx context.Context, in oneInput) (endpoint.Message, error) {
	return endpoint.Confirm(ctx, s.Texts, "screening.dropped"), s.Drop(ctx, in.ID)
}
