package customers

import (
	"context"

	"kontor/modules/kit/types"
	"kontor/server/endpoint"
)

// ReasonTemplate is a text that reviewers can start from. It is addressed to the customer.
type ReasonTemplate struct {
	ID        string            `json:"id" format:"-" example:"unreadable"`
	KYCStatus Status            `json:"kyc_status" doc:"The decision that the reason is for."`
	Texts     map[string]string `json:"texts" doc:"By language: en, de, fr, it."`
}

// ReasonTemplates are the templates of all decisions.
type ReasonTemplates struct {
	Reasons []ReasonTemplate `json:"reasons"`
}

// reasonIDs are the templates by the decision that they are for. Their texts have the keys kyc.reason.<id>.
var reasonIDs = []struct {
	status Status
	ids    []string
}{
	{Verified, []string{"documents_checked", "seen_in_person", "enhanced_checked"}},
	{ActionRequired, []string{"unreadable", "both_sides", "address_missing", "address_old", "document_expired", "name_differs", "funds_unclear"}},
	{Rejected, []string{"not_the_person", "altered", "no_answer", "not_accepted"}},
}

// Reasons returns the templates for the reasons of decisions, in all languages: a reason is written in the language of the customer.
func (s *Service) Reasons(context.Context, endpoint.None) (ReasonTemplates, error) {
	out := ReasonTemplates{Reasons: []ReasonTemplate{}}
	for _, group := range reasonIDs {
		for _, id := range group.ids {
			texts := map[string]string{}
			for _, language := range []types.Language{types.English, types.German, types.French, types.Italian} {
				texts[language.String()] = s.texts.Text(language.String(), "kyc.reason."+id, nil)
			}
			out.Reasons = append(out.Reasons, ReasonTemplate{ID: id, KYCStatus: group.status, Texts: texts})
		}
	}
	return out, nil
}
