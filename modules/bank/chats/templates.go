package chats

import (
	"context"

	"kontor/modules/kit/types"
	"kontor/server/endpoint"
)

// ReplyTemplate is a text that staff can start an answer from.
type ReplyTemplate struct {
	ID    string            `json:"id" format:"-" example:"received"`
	Texts map[string]string `json:"texts" doc:"By language: en, de, fr, it."`
}

// ReplyTemplates are all templates.
type ReplyTemplates struct {
	Templates []ReplyTemplate `json:"templates"`
}

// replyIDs are the templates. Their texts have the keys chats.reply.<id>.
var replyIDs = []string{"received", "need_document", "photo_unreadable", "verified", "appointment", "call_back", "more_information", "solved"}

// Templates returns the templates for answers in all languages: staff write in the language of the customer.
func (s *Service) Templates(ctx context.Context, _ endpoint.None) (ReplyTemplates, error) {
	out := ReplyTemplates{Templates: []ReplyTemplate{}}
	if err := checkTeam(ctx); err != nil {
		return out, err
	}
	for _, id := range replyIDs {
		texts := map[string]string{}
		for _, language := range []types.Language{types.English, types.German, types.French, types.Italian} {
			texts[language.String()] = s.texts.Text(language.String(), "chats.reply."+id, nil)
		}
		out.Templates = append(out.Templates, ReplyTemplate{ID: id, Texts: texts})
	}
	return out, nil
}
