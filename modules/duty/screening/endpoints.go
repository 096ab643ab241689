package screening

import (
	"context"
	"net/http"
	"time"

	"kontor/modules/kit/hit"
	"kontor/modules/kit/list"
	"kontor/modules/kit/upload"
	"kontor/server/access"
	"kontor/server/apierr"
	"kontor/server/endpoint"
	"kontor/server/metrics"
	"kontor/server/ratelimit"
	"kontor/store"
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

const hitNotes = "Only reviewers read hits, and none about themselves: customers must not learn that they match a list. An open, pending or confirmed hit of a " +
	"customer or of one of its payers blocks the verification of the customer."

const decideNotes = "A confirmation needs a second person, and so does the dismissal of a confirmed hit; with `kyc.four_eyes=always` every decision does. The second " +
	"person sends the same decision. `open` takes a pending decision back, or a dismissal. A dismissal holds until the entry or the identity of the subject changes."

// Endpoints returns the rows of the module. Lists are for administrators; checks are for staff who review customers.
func (s *Service) Endpoints() []endpoint.Endpoint {
	staff, review := []string{access.Advisor}, access.On(access.Customers, access.Update)
	rows := []endpoint.Endpoint{
		{Name: "screening.load", Method: http.MethodPost, Path: "/v1/screening/lists", Assurance: endpoint.Fresh,
			Subject: access.NoSubject("lists give no rights"), MaxBody: maxUpload + upload.FormOverhead, OwnTime: true,
			Summary: "Load a list, or replace the one of the same name.",
			Faults: []apierr.Kind{apierr.InvalidInput, apierr.ScreeningTooMany, apierr.ScreeningReplaced, apierr.PayloadTooLarge, apierr.RequestTimeout,
				apierr.TooManyAtOnce},
			Doc:    endpoint.Doc{Body: listForm{}, Description: uploadNotes},
			Handle: endpoint.Streamed(http.StatusCreated, []string{upload.FormMedia}, s.upload)},
		{Name: "screening.lists", Method: http.MethodGet, Path: "/v1/screening/lists", Roles: staff, Summary: "List the lists that are in force.",
			Doc: endpoint.Doc{Search: listOfLists.Search()}, Handle: endpoint.JSON(http.StatusOK, s.page)},
		{Name: "screening.drop", Method: http.MethodDelete, Path: "/v1/screening/lists/{id}", Assurance: endpoint.Fresh, Find: s.findList,
			Subject: access.NoSubject("lists give no rights"), Summary: "Drop a list.",
			Faults: []apierr.Kind{apierr.ScreeningListNotFound}, Handle: endpoint.JSON(http.StatusOK, s.drop)},
		{Name: "screening.hits", Method: http.MethodGet, Path: "/v1/screening/hits", Roles: staff, Access: review,
			Summary: "List the hits: records whose names are like those of entries of the lists.", Doc: endpoint.Doc{Search: listOfHits.Search(), Description: hitNotes},
			Handle: endpoint.JSON(http.StatusOK, s.Hits)},
		{Name: "screening.hit", Method: http.MethodGet, Path: "/v1/screening/hits/{id}", Roles: staff, Access: review,
			Summary: "Get a hit with both sides, the evidence and the history.", Doc: endpoint.Doc{Description: hitNotes},
			Faults: []apierr.Kind{apierr.ScreeningHitNotFound}, Handle: endpoint.JSON(http.StatusOK, s.Hit)},
		{Name: "screening.decide", Method: http.MethodPost, Path: "/v1/screening/hits/{id}/decide", Roles: staff, Access: review,
			Assurance: endpoint.Decision, Find: s.findHit,
			Summary: "Dismiss or confirm a hit, or decide as the second person.", Doc: endpoint.Doc{Description: decideNotes, Answers: []endpoint.Answer{
				{Status: http.StatusOK, Body: hit.Hit{}},
				{Status: http.StatusAccepted, Says: "The decision waits for a second person.", Body: hit.Hit{}},
			}},
			Faults: []apierr.Kind{apierr.ScreeningHitNotFound, apierr.ScreeningHitNotOpen, apierr.ScreeningDecisionWaits, apierr.SecondPersonRequired,
				apierr.SelfVerification, apierr.OwnPersona, apierr.PreconditionFailed},
			Handle: endpoint.JSON(http.StatusOK, s.Decide)},
		{Name: "screening.check", Method: http.MethodPost, Path: "/v1/screening/check", Roles: staff,
			Subject: access.NoSubject("it changes nothing"), Summary: "Compare a name with the lists.", Doc: endpoint.Doc{Description: checkNotes},
			Faults: []apierr.Kind{apierr.Unavailable}, Handle: endpoint.JSON(http.StatusOK, s.Check)},
	}
	for i := range rows {
		rows[i].Tag, rows[i].Limit = "Screening", ratelimit.Private
		if rows[i].Access == (access.Rule{}) {
			rows[i].Access = access.SignedIn
		}
	}
	return rows
}

func (s *Service) page(ctx context.Context, in list.Input) (list.Page[List], error) {
	return s.Lists(ctx, in.Query)
}

// Lists returns a page of the lists.
func (s *Service) Lists(ctx context.Context, query list.Params) (list.Page[List], error) {
	page, err := listOfLists.Page(ctx, s.db, query)
	for i := range page.Data.Rows {
		page.Data.Rows[i].TooOld = s.tooOld(page.Data.Rows[i])
	}
	return page, err
}

// tooOld reports whether a list was loaded longer ago than the setting screening.max_age_days says.
func (s *Service) tooOld(l List) bool { return s.MaxAge > 0 && s.db.Now() > l.LoadedAt.Add(s.MaxAge) }

// AddMetrics adds the ages of the lists of this node to a scrape.
func (s *Service) AddMetrics(scrape *metrics.Scrape) {
	current := s.snapshot()
	if current == nil {
		return
	}
	old, oldest := 0, time.Duration(0)
	for _, l := range current.lists {
		oldest = max(oldest, s.db.Now().Std().Sub(l.LoadedAt.Std()))
		if s.tooOld(l) {
			old++
		}
	}
	scrape.Gauge("kontor_screening_lists", "Lists that are searched.", float64(len(current.lists)))
	scrape.Gauge("kontor_screening_lists_too_old", "Lists that are older than screening.max_age_days.", float64(old))
	scrape.Gauge("kontor_screening_oldest_list_seconds", "Time since the list was loaded that was loaded first.", oldest.Seconds())
}

func (s *Service) findList(ctx context.Context, ids []string, _ any) error {
	exists, err := store.Exists(ctx, s.db, selectListID, ids[0])
	if err == nil && !exists {
		err = apierr.ScreeningListNotFound
	}
	return err
}

func (s *Service) findHit(ctx context.Context, ids []string, _ any) error {
	_, err := s.visible(ctx, s.db, ids[0])
	return err
}

func (s *Service) drop(ctx context.Context, in endpoint.ByID) (endpoint.Message, error) {
	return endpoint.Confirm(ctx, s.Texts, "screening.dropped"), s.Drop(ctx, in.ID)
}
