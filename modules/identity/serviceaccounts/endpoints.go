package serviceaccounts

import (
	"context"
	"net/http"

	"kontor/modules/kit/list"
	"kontor/server/access"
	"kontor/server/apierr"
	"kontor/server/endpoint"
	"kontor/server/ratelimit"
)

// Endpoints returns the endpoints of the module. No built-in role but Administrator has grants on them.
func (s *Service) Endpoints() []endpoint.Endpoint {
	const one = "/v1/service-accounts/{id}"
	found := []apierr.Kind{apierr.ServiceAccountNotFound}
	rows := []endpoint.Endpoint{
		{Name: "service_accounts.create", Method: http.MethodPost, Path: "/v1/service-accounts", Subject: access.NoSubject("the roles of the account are compared with those of the caller"),
			Access: access.On(access.Services, access.Create), Assurance: endpoint.SecondFactor, Summary: "Create a service account.",
			Faults: []apierr.Kind{apierr.GrantNotHeld}, Handle: endpoint.JSON(http.StatusCreated, s.Create)},
		{Name: "service_accounts.list", Method: http.MethodGet, Path: "/v1/service-accounts",
			Access: access.On(access.Services, access.Read), Summary: "List service accounts.",
			Doc: endpoint.Doc{Search: accountList.Search()}, Handle: endpoint.JSON(http.StatusOK, s.listAccounts)},
		{Name: "service_accounts.get", Method: http.MethodGet, Path: one,
			Access: access.On(access.Services, access.Read), Summary: "Get a service account.",
			Faults: found, Handle: endpoint.JSON(http.StatusOK, s.getAccount)},
		{Name: "service_accounts.update", Method: http.MethodPatch, Path: one, Subject: access.AccountIn("id"),
			Access: access.On(access.Services, access.Update), Assurance: endpoint.SecondFactor, Summary: "Update a service account.",
			Faults: []apierr.Kind{apierr.ServiceAccountNotFound, apierr.GrantNotHeld, apierr.RecordErased, apierr.PreconditionFailed},
			Handle: endpoint.JSON(http.StatusOK, s.Update)},
		{Name: "service_accounts.disable", Method: http.MethodDelete, Path: one, Subject: access.AccountIn("id"),
			Access: access.On(access.Services, access.Delete), Assurance: endpoint.SecondFactor,
			Summary: "Disable a service account and revoke its tokens.",
			Faults:  []apierr.Kind{apierr.ServiceAccountNotFound, apierr.RecordErased, apierr.PreconditionFailed},
			Handle:  endpoint.JSON(http.StatusOK, s.disableAccount)},
		{Name: "service_accounts.create_token", Method: http.MethodPost, Path: one + "/tokens", Subject: access.AccountIn("id"),
			Access: access.On(access.Services, access.Update), Assurance: endpoint.SecondFactor, Summary: "Create a token of a service account.",
			Faults: []apierr.Kind{apierr.ServiceAccountNotFound, apierr.ServiceAccountDisabled, apierr.GrantNotHeld, apierr.TooManyServiceTokens},
			Handle: endpoint.JSON(http.StatusCreated, s.Issue)},
		{Name: "service_accounts.tokens", Method: http.MethodGet, Path: one + "/tokens",
			Access: access.On(access.Services, access.Read), Summary: "List the tokens of a service account.",
			Faults: found, Doc: endpoint.Doc{Search: tokenList.Search()}, Handle: endpoint.JSON(http.StatusOK, s.listTokens)},
		{Name: "service_accounts.revoke_token", Method: http.MethodDelete, Path: one + "/tokens/{token_id}", Subject: access.AccountIn("id"),
			Access: access.On(access.Services, access.Update), Assurance: endpoint.SecondFactor, Summary: "Revoke a token of a service account.",
			Faults: []apierr.Kind{apierr.ServiceAccountNotFound, apierr.ServiceTokenNotFound}, Handle: endpoint.JSON(http.StatusOK, s.revokeToken)},
	}
	for i := range rows {
		rows[i].Tag, rows[i].Limit = "Service accounts", ratelimit.Private
	}
	return rows
}

type listInput struct {
	Query list.Params `query:"*"`
}

func (s *Service) listAccounts(ctx context.Context, in listInput) (list.Page[Account], error) {
	return s.List(ctx, in.Query)
}

type accountInput struct {
	ID string `path:"id"`
}

func (s *Service) getAccount(ctx context.Context, in accountInput) (Account, error) {
	return s.Get(ctx, in.ID)
}

func (s *Service) disableAccount(ctx context.Context, in accountInput) (endpoint.Message, error) {
	return endpoint.Confirm(ctx, s.Texts, "service_accounts.disabled"), s.Disable(ctx, in.ID)
}

type tokensInput struct {
	ID    string      `path:"id"`
	Query list.Params `query:"*"`
}

func (s *Service) listTokens(ctx context.Context, in tokensInput) (list.Page[Token], error) {
	return s.Tokens(ctx, in.ID, in.Query)
}

type revokeInput struct {
	ID      string `path:"id"`
	TokenID string `path:"token_id"`
}

func (s *Service) revokeToken(ctx context.Context, in revokeInput) (endpoint.Message, error) {
	return endpoint.Confirm(ctx, s.Texts, "service_accounts.token_revoked"), s.Revoke(ctx, in.ID, in.TokenID)
}
