// Package serviceaccounts lets programs call the API as users of their own. A service account is a user of the kind service, with
// roles and grants like a person. It has no password, credentials, second factor or sessions; it presents a token.
//
// A token may call what both its scopes and the grants of its account allow, from its networks, until it expires. An account has
// several tokens at a time, so that they can be replaced without a break. The text of a token is shown once; the table has a keyed
// hash. Verified tokens are cached in memory: a revocation, a disabled account and changed roles count for the very next request.
//
// A program cannot prove that a person is present. So service accounts are refused wherever a recent authentication or a second
// factor is required, and they cannot create further accounts, tokens, roles or grants.
package serviceaccounts

import (
	"cmp"
	"context"
	"fmt"
	"hash/fnv"
	"log/slog"
	"net/http"
	"slices"

	"kontor/modules/kit/event"
	"kontor/modules/kit/list"
	"kontor/modules/kit/personal"
	"kontor/modules/kit/records"
	"kontor/modules/kit/revocable"
	"kontor/server/access"
	"kontor/server/apierr"
	"kontor/server/endpoint"
	"kontor/server/ratelimit"
	"kontor/store"
)

// Users is what the module needs from the directory.
type Users interface {
	// CreateMachine stores the user of a service account with roles, and returns its id. It returns apierr.InvalidInput for unknown
	// roles, and apierr.GrantNotHeld for roles that the caller does not hold.
	CreateMachine(ctx context.Context, tx *store.Tx, name string, roles []string) (id string, err error)
	// ChangeMachine changes name and status of the user; nil stays. It returns apierr.RecordErased.
	ChangeMachine(ctx context.Context, tx *store.Tx, id string, name, status *string) error
	// Administrators returns the ids of the active people with the role Administrator.
	Administrators(ctx context.Context, q store.Querier) ([]string, error)
}

// Auth is what the module needs from sign-in.
type Auth interface {
	// Changed reports that the transaction changes what a user may do. After the commit it calls [Service.Forget], and ends the
	// streams of the user that lost their right.
	Changed(tx *store.Tx, userID string)
}

// Notifier is what the module needs from notifications.
type Notifier interface {
	Notify(ctx context.Context, tx *store.Tx, e event.Event) error
}

// Options are the settings of the module.
type Options struct {
	// CheckHolds returns apierr.GrantNotHeld unless the caller holds every right of a user.
	CheckHolds func(ctx context.Context, q store.Querier, userID string) error
	Texts      endpoint.Texts
	Log        *slog.Logger
}

// maxCached is the number of verified tokens in memory.
const maxCached = 4 << 10

// Service is the module.
type Service struct {
	personal.Nothing
	Options
	db       *store.DB
	users    Users
	auth     Auth
	notifier Notifier

	scopes      []string // names of the endpoints that a token may be for
	generations *revocable.Generations
	texts       *revocable.Cache[*verified] // by the text of the token
	tokens      *revocable.Cache[*verified] // by its id, for streams
	uses        *records.Uses               // of tokens
}

// New returns the module on a database. Close it when the server has stopped.
func New(db *store.DB, users Users, auth Auth, notifier Notifier, o Options) *Service {
	o.Log = cmp.Or(o.Log, slog.New(slog.DiscardHandler))
	return &Service{Options: o, db: db, users: users, auth: auth, notifier: notifier, generations: revocable.NewGenerations(db.Remembers),
		uses:  &records.Uses{Proof: tokenProof, Action: "service_tokens.rehash", UpdateUse: updateUse, UpdateHash: updateHash},
		texts: revocable.NewCache[*verified](maxCached), tokens: revocable.NewCache[*verified](maxCached)}
}

// SetScopes registers the endpoints that accept tokens of service accounts. Call it before the first request.
func (s *Service) SetScopes(table []endpoint.Endpoint) {
	for _, e := range table {
		if e.ForMachines() {
			s.scopes = append(s.scopes, e.Name)
		}
	}
	slices.Sort(s.scopes)
}

// Close writes the pending uses and closes the caches.
func (s *Service) Close(ctx context.Context) error {
	err := s.FlushUse(ctx)
	s.texts.Close()
	s.tokens.Close()
	return err
}

// Records returns the relations of users to service accounts.
func (s *Service) Records() map[access.RecordType]access.Records {
	return map[access.RecordType]access.Records{access.Services: records.Of(s.db, &accountTable)}
}

// The states of an account, which are those of its user.
const (
	active   = "active"
	disabled = "disabled"

	actionCreate = "service_accounts.create"
	actionUpdate = "service_accounts.update"
)

// Account is a service account.
type Account struct {
	ID          string     `json:"id" doc:"The id of its user: roles and grants are given to this id."`
	Name        string     `json:"name" maxLength:"100" example:"Back office" doc:"The display name of its user."`
	Description string     `json:"description" maxLength:"500" example:"Reads customers every night."`
	Status      string     `json:"status" enum:"active,disabled"`
	Roles       []string   `json:"roles" example:"Advisor" doc:"Names, in alphabetical order."`
	CreatedAt   store.Time `json:"created_at"`
	CreatedBy   string     `json:"created_by"`
	ModifiedAt  store.Time `json:"modified_at"`
	ModifiedBy  string     `json:"modified_by"`

	version int64
}

// EachUser names the account, its creator and its last editor.
func (a Account) EachUser(add func(id string)) {
	add(a.ID)
	add(a.CreatedBy)
	add(a.ModifiedBy)
}

// ETag returns the validator of the record. It covers what belongs to the user: name, status and roles.
func (a Account) ETag() string {
	h := fnv.New32a()
	fmt.Fprintf(h, "%q %q %q", a.Name, a.Status, a.Roles)
	return fmt.Sprintf("%d-%08x", a.version, h.Sum32())
}

// Create creates an account with roles. It returns apierr.InvalidInput for unknown roles and apierr.GrantNotHeld.
func (s *Service) Create(ctx context.Context, in CreateInput) (Account, error) {
	var a Account
	err := s.db.InTx(ctx, func(tx *store.Tx) error {
		id, err := s.users.CreateMachine(ctx, tx, in.Name, in.Roles)
		if err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, insertAccount, id, in.Description, tx.Now(), records.Actor(ctx)); err != nil {
			return fmt.Errorf("store a service account: %w", err)
		}
		if err := accountProof.Audit(ctx, tx, actionCreate, id, nil); err != nil {
			return err
		}
		if a, err = read(ctx, tx, id, access.None); err == nil {
			tx.Respond(a)
		}
		return err
	})
	return a, err
}

// read reads an account with its roles for a caller with a permission, or unchecked for access.None.
func read(ctx context.Context, q store.Querier, id string, wanted access.Permission) (a Account, err error) {
	if wanted == access.None {
		a, err = accountTable.GetUnchecked(ctx, q, id)
	} else {
		a, err = accountTable.Get(ctx, q, id, wanted)
	}
	if err != nil {
		return Account{}, err
	}
	one := []Account{a}
	err = fillRoles(ctx, q, one)
	return one[0], err
}

// Get reads an account. It returns apierr.ServiceAccountNotFound and apierr.NoAccess.
func (s *Service) Get(ctx context.Context, id string) (Account, error) {
	return read(ctx, s.db, id, access.Read)
}

// List lists the accounts that the caller may read.
func (s *Service) List(ctx context.Context, query list.Params) (list.Page[Account], error) {
	page, err := accountList.Page(ctx, s.db, query, accountTable.Visible(access.From(ctx)))
	if err != nil {
		return page, err
	}
	return page, fillRoles(ctx, s.db, page.Data.Rows)
}

// Update changes name, description and status. Tokens of a disabled account are refused; they are valid again when it is active
// again, unless they were revoked. It returns apierr.ServiceAccountNotFound, apierr.NoAccess, apierr.RecordErased and
// apierr.PreconditionFailed.
func (s *Service) Update(ctx context.Context, in UpdateInput) (Account, error) {
	var a Account
	err := s.db.InTx(ctx, func(tx *store.Tx) (err error) {
		if a, err = s.getForChange(ctx, tx, in.ID, access.Update); err != nil {
			return err
		}
		if err := s.users.ChangeMachine(ctx, tx, in.ID, in.Name, in.Status); err != nil {
			return err
		}
		if in.Description != nil && *in.Description != a.Description {
			if err := accountProof.ChangeRow(ctx, tx, actionUpdate, in.ID,
				updateDescription, in.ID, *in.Description, tx.Now(), records.Actor(ctx)); err != nil {
				return err
			}
		}
		a, err = read(ctx, tx, in.ID, access.None)
		return err
	})
	return a, err
}

// getForChange reads an account for a caller with a permission, and compares If-Match.
func (s *Service) getForChange(ctx context.Context, tx *store.Tx, id string, wanted access.Permission) (Account, error) {
	a, err := read(ctx, tx, id, wanted)
	if err != nil {
		return a, err
	}
	return a, endpoint.CheckMatch(ctx, a.ETag())
}

// disable disables an account and revokes all of its tokens. Disabling it again changes nothing. It returns
// apierr.ServiceAccountNotFound, apierr.NoAccess, apierr.RecordErased and apierr.PreconditionFailed.
func (s *Service) disable(ctx context.Context, in endpoint.ByID) (endpoint.Message, error) {
	err := s.db.InTx(ctx, func(tx *store.Tx) error {
		if _, err := s.getForChange(ctx, tx, in.ID, access.Delete); err != nil {
			return err
		}
		tokens, err := store.All(ctx, tx, store.Text, selectLive, in.ID)
		if err != nil {
			return err
		}
		for _, token := range tokens {
			if err := s.revoke(ctx, tx, in.ID, token); err != nil {
				return err
			}
		}
		status := disabled
		return s.users.ChangeMachine(ctx, tx, in.ID, nil, &status)
	})
	return endpoint.Confirm(ctx, s.Texts, "service_accounts.disabled"), err
}

// CheckMayActAs checks that the caller may have done what a service account may do: [Service.Issue] would give them a token of it. It
// returns apierr.ServiceAccountNotFound, apierr.NoAccess and apierr.GrantNotHeld.
func (s *Service) CheckMayActAs(ctx context.Context, tx *store.Tx, id string) error {
	if _, err := accountTable.Get(ctx, tx, id, access.Update); err != nil {
		return err
	}
	return s.CheckHolds(ctx, tx, id)
}

// Endpoints returns the endpoints of the module. No built-in role but Administrator has grants on them.
func (s *Service) Endpoints() []endpoint.Endpoint {
	const one = "/v1/service-accounts/{id}"
	found := []apierr.Kind{apierr.ServiceAccountNotFound}
	return endpoint.Group("Service accounts", ratelimit.Private, []endpoint.Endpoint{
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
			Access:    access.On(access.Services, access.Update),
			Assurance: endpoint.SecondFactor, Find: records.Finder(s.db, &accountTable, access.Update),
			Summary: "Update a service account.",
			Faults:  []apierr.Kind{apierr.ServiceAccountNotFound, apierr.GrantNotHeld, apierr.RecordErased, apierr.PreconditionFailed},
			Handle:  endpoint.JSON(http.StatusOK, s.Update)},
		{Name: "service_accounts.disable", Method: http.MethodDelete, Path: one, Subject: access.AccountIn("id"),
			Access:    access.On(access.Services, access.Delete),
			Assurance: endpoint.SecondFactor, Find: records.Finder(s.db, &accountTable, access.Delete),
			Summary: "Disable a service account and revoke its tokens.",
			Faults:  []apierr.Kind{apierr.ServiceAccountNotFound, apierr.RecordErased, apierr.PreconditionFailed},
			Handle:  endpoint.JSON(http.StatusOK, s.disable)},
		{Name: "service_accounts.create_token", Method: http.MethodPost, Path: one + "/tokens", Subject: access.AccountIn("id"),
			Access:    access.On(access.Services, access.Update),
			Assurance: endpoint.SecondFactor, Find: records.Finder(s.db, &accountTable, access.Update),
			Summary: "Create a token of a service account.",
			Faults:  []apierr.Kind{apierr.ServiceAccountNotFound, apierr.ServiceAccountDisabled, apierr.GrantNotHeld, apierr.TooManyServiceTokens},
			Handle:  endpoint.JSON(http.StatusCreated, s.Issue)},
		{Name: "service_accounts.tokens", Method: http.MethodGet, Path: one + "/tokens",
			Access: access.On(access.Services, access.Read), Summary: "List the tokens of a service account.",
			Faults: found, Doc: endpoint.Doc{Search: tokenList.Search()}, Handle: endpoint.JSON(http.StatusOK, s.listTokens)},
		{Name: "service_accounts.revoke_token", Method: http.MethodDelete, Path: one + "/tokens/{token_id}", Subject: access.AccountIn("id"),
			Access: access.On(access.Services, access.Update), Assurance: endpoint.SecondFactor, Find: s.findToken,
			Summary: "Revoke a token of a service account.",
			Faults:  []apierr.Kind{apierr.ServiceAccountNotFound, apierr.ServiceTokenNotFound}, Handle: endpoint.JSON(http.StatusOK, s.revokeToken)},
	})
}

func (s *Service) listAccounts(ctx context.Context, in list.Input) (list.Page[Account], error) {
	return s.List(ctx, in.Query)
}

func (s *Service) getAccount(ctx context.Context, in endpoint.ByID) (Account, error) {
	return s.Get(ctx, in.ID)
}

func (s *Service) listTokens(ctx context.Context, in list.OfInput) (list.Page[Token], error) {
	return s.Tokens(ctx, in.ID, in.Query)
}

type revokeInput struct {
	ID      string `path:"id"`
	TokenID string `path:"token_id"`
}

func (s *Service) revokeToken(ctx context.Context, in revokeInput) (endpoint.Message, error) {
	return endpoint.Confirm(ctx, s.Texts, "service_accounts.token_revoked"), s.Revoke(ctx, in.ID, in.TokenID)
}
