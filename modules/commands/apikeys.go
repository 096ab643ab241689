package commands

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"kontor/modules/app"
	"kontor/modules/identity/auth"
	"kontor/modules/identity/rbac"
	"kontor/modules/identity/serviceaccounts"
	"kontor/modules/kit/list"
	"kontor/server/apierr"
	"kontor/server/settings"
	"kontor/store"
)

// apiKeys returns the commands about API keys. A server with a data directory
// must be stopped, because it holds the directory.
func (l *commandLine) apiKeys() *cobra.Command {
	return group("apikey", "Create, list and revoke API keys.", l.createAPIKey(), l.listAPIKeys(), l.revokeAPIKey())
}

func (l *commandLine) createAPIKey() *cobra.Command {
	var name, expires string
	var limits auth.KeyLimits
	cmd := &cobra.Command{
		Use: "create <name>", Short: "Create an API key and print it; it cannot be shown again.",
		Long:    "The name says what the key is for.\n\n" + stoppedHelp,
		Example: `kontor apikey create "web site" --scope=users.register --expires=2027-01-31`, Args: arguments(&name),
		// It prints only the key, so that a script can read it.
		RunE: l.run(func(ctx context.Context, p Process, r *settings.Result) (err error) {
			if strings.TrimSpace(name) == "" {
				return errors.New("the name of the key is empty; enter what the key is for")
			}
			if limits.Expires, err = parseExpiry(expires); err != nil {
				return err
			}
			return administer(ctx, p, r, func(ctx context.Context, m *app.Modules) error {
				created, err := m.Auth.CreateKey(ctx, name, limits)
				if err != nil {
					return err
				}
				return p.say("%s", created.Key)
			})
		}),
	}
	cmd.Flags().StringSliceVar(&limits.Scopes, "scope", nil, "`Name` of an endpoint that the key may call, such as users.register; may be repeated. Default: all endpoints that accept a key.")
	cmd.Flags().StringVar(&expires, "expires", "", "`Time` of expiry, such as 2027-01-31 (UTC) or 2027-01-31T08:00:00Z. Default: never.")
	return cmd
}

// parseExpiry parses the flag --expires: a date or a time. It returns nil for an empty text.
func parseExpiry(text string) (*store.Time, error) {
	if text == "" {
		return nil, nil
	}
	at, err := time.Parse(time.DateOnly, text)
	if err != nil {
		at, err = time.Parse(time.RFC3339, text)
	}
	if err != nil {
		return nil, fmt.Errorf("--expires=%s is neither a date such as 2027-01-31 nor a time such as 2027-01-31T08:00:00Z", text)
	}
	end := store.TimeOf(at)
	return &end, nil
}

func (l *commandLine) listAPIKeys() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "list", Short: "List all API keys, without their secrets.", Long: stoppedHelp,
		Example: "kontor apikey list --json", Args: arguments(), RunE: l.administer(func(ctx context.Context, m *app.Modules) error {
			keys, err := allRows(ctx, m.Auth.Keys)
			if err != nil {
				return err
			}
			if asJSON {
				return l.process.printJSON(keys)
			}
			table := tabwriter.NewWriter(l.process.Stdout, 0, 0, 2, ' ', 0)
			fmt.Fprintln(table, "ID\tCREATED\tLAST USED\tREVOKED\tEXPIRES\tSCOPES\tNAME")
			for _, k := range keys {
				fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", k.ID, k.CreatedAt, timeOrDash(k.LastUsedAt), timeOrDash(k.RevokedAt),
					timeOrDash(k.ExpiresAt), strings.Join(k.Scopes, ","), printable(k.Name))
			}
			return table.Flush()
		}),
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "Print JSON.")
	return cmd
}

// printable quotes a name that contains control characters, which could send commands to the terminal.
func printable(name string) string {
	quoted := strconv.Quote(name)
	if quoted == `"`+name+`"` {
		return name
	}
	return quoted
}

func timeOrDash(t *store.Time) string {
	if t == nil {
		return "-"
	}
	return t.String()
}

const keysPerPage = 100

func (l *commandLine) revokeAPIKey() *cobra.Command {
	var id string
	return &cobra.Command{
		Use: "revoke <id>", Short: "Revoke an API key.", Long: "\"kontor apikey list\" prints the ids of the keys.\n\n" + stoppedHelp,
		Example: "kontor apikey revoke 01a1fb8a-2c0a-7d94-ab9c-5d46a808af71", Args: arguments(&id),
		RunE: l.administer(func(ctx context.Context, m *app.Modules) error {
			if err := m.Auth.RevokeKey(ctx, id); err != nil {
				return err
			}
			return l.process.say("%s was revoked", id)
		}),
	}
}

// services groups the commands about service accounts. A server with a data
// directory must be stopped, because it holds the directory.
func (l *commandLine) services() *cobra.Command {
	return group("service", "Create service accounts for programs, and their tokens.", l.createService(), l.listServices(), l.createToken(), l.revokeToken())
}

func (l *commandLine) createService() *cobra.Command {
	var in serviceaccounts.CreateInput
	cmd := &cobra.Command{
		Use: "create <name>", Short: "Create a service account and print its id.", Long: "The name is that of the program.\n\n" + stoppedHelp,
		Example: `kontor service create "Back office" --role=Advisor`, Args: arguments(&in.Name),
		// It prints only the id, so that a script can read it.
		RunE: l.run(func(ctx context.Context, p Process, r *settings.Result) error {
			if err := validated(&in); err != nil {
				return err
			}
			return administer(ctx, p, r, func(ctx context.Context, m *app.Modules) error {
				created, err := m.Services.Create(ctx, in)
				if err != nil {
					return err
				}
				return p.say("%s", created.ID)
			})
		}),
	}
	cmd.Flags().StringVar(&in.Description, "description", "", "`Text` that says what the program does.")
	cmd.Flags().StringSliceVar(&in.Roles, "role", nil, "`Role` of the account, by name or id; may be repeated. Default: none.")
	suggest(cmd, "role", rbac.BuiltInNames()...)
	return cmd
}

// validated returns what is wrong with an input.
func validated(in interface{ Validate(v *apierr.Fields) }) error {
	var problems apierr.Fields
	in.Validate(&problems)
	return problems.Err()
}

func (l *commandLine) createToken() *cobra.Command {
	var in serviceaccounts.TokenInput
	var expires string
	cmd := &cobra.Command{
		Use: "token <id>", Short: "Create a token of a service account and print it; it cannot be shown again.",
		Long:    "\"kontor service list\" prints the ids of the accounts.\n\n" + stoppedHelp,
		Example: "kontor service token 01a1fb8a-2c0a-7d94-ab9c-5d46a808af71 --scope=customers.list --network=192.0.2.0/24",
		Args:    arguments(&in.AccountID),
		// It prints only the token, so that a script can read it.
		RunE: l.run(func(ctx context.Context, p Process, r *settings.Result) (err error) {
			if in.Expires, err = parseExpiry(expires); err != nil {
				return err
			}
			if err := validated(&in); err != nil {
				return err
			}
			return administer(ctx, p, r, func(ctx context.Context, m *app.Modules) error {
				created, err := m.Services.Issue(ctx, in)
				if err != nil {
					return err
				}
				return p.say("%s", created.Text)
			})
		}),
	}
	f := cmd.Flags()
	f.StringVar(&in.Name, "name", "Command line", "`Text` that says what the token is for.")
	f.StringSliceVar(&in.Scopes, "scope", nil, "`Name` of an endpoint that the token may call, such as customers.list; may be repeated. Default: all that the account may call.")
	f.StringSliceVar(&in.Networks, "network", nil, "`Network` from which the token is accepted, such as 192.0.2.0/24; may be repeated. Default: all.")
	f.StringVar(&expires, "expires", "", "`Time` of expiry, such as 2027-01-31 (UTC) or 2027-01-31T08:00:00Z, at most 400 days from now. Default: in 90 days.")
	return cmd
}

// listedAccount is an account with its tokens.
type listedAccount struct {
	serviceaccounts.Account
	Tokens []serviceaccounts.Token `json:"tokens"`
}

func (l *commandLine) listServices() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "list", Short: "List all service accounts with their tokens, without secrets.", Long: stoppedHelp,
		Example: "kontor service list --json", Args: arguments(), RunE: l.administer(func(ctx context.Context, m *app.Modules) error {
			accounts, err := accountsWithTokens(ctx, m.Services)
			if err != nil {
				return err
			}
			if asJSON {
				return l.process.printJSON(accounts)
			}
			table := tabwriter.NewWriter(l.process.Stdout, 0, 0, 2, ' ', 0)
			fmt.Fprintln(table, "ACCOUNT\tSTATUS\tROLES\tTOKEN\tEXPIRES\tLAST USED\tREVOKED\tNETWORKS\tSCOPES\tNAME")
			for _, a := range accounts {
				fmt.Fprintf(table, "%s\t%s\t%s\t-\t-\t-\t-\t-\t-\t%s\n", a.ID, a.Status, printable(strings.Join(a.Roles, ",")), printable(a.Name))
				for _, t := range a.Tokens {
					fmt.Fprintf(table, "%s\t-\t-\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", a.ID, t.ID, t.ExpiresAt, timeOrDash(t.LastUsedAt), timeOrDash(t.RevokedAt),
						strings.Join(t.Networks, ","), strings.Join(t.Scopes, ","), printable(t.Name))
				}
			}
			return table.Flush()
		}),
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "Print JSON.")
	return cmd
}

func accountsWithTokens(ctx context.Context, service *serviceaccounts.Service) ([]listedAccount, error) {
	accounts, err := allRows(ctx, service.List)
	all := make([]listedAccount, len(accounts))
	for i, a := range accounts {
		if err != nil {
			break
		}
		all[i].Account = a
		all[i].Tokens, err = allRows(ctx, func(ctx context.Context, query list.Params) (list.Page[serviceaccounts.Token], error) {
			return service.Tokens(ctx, a.ID, query)
		})
	}
	return all, err
}

// allRows reads all pages of a list, the oldest row first.
func allRows[T any](ctx context.Context, page func(context.Context, list.Params) (list.Page[T], error)) ([]T, error) {
	all := []T{}
	for {
		query, err := list.Parse(map[string][]string{
			"limit": {strconv.Itoa(keysPerPage)}, "offset": {strconv.Itoa(len(all))}, "sort": {"created_at"},
		})
		if err != nil {
			return nil, err
		}
		found, err := page(ctx, query)
		if err != nil {
			return nil, err
		}
		all = append(all, found.Data.Rows...)
		if !found.HasMore {
			return all, nil
		}
	}
}

func (l *commandLine) revokeToken() *cobra.Command {
	var account, token string
	return &cobra.Command{
		Use: "revoke <account> <token>", Short: "Revoke a token.",
		Long:    "\"kontor service list\" prints the ids of accounts and tokens.\n\n" + stoppedHelp,
		Example: "kontor service revoke 01a1fb8a-2c0a-7d94-ab9c-5d46a808af71 01a1fb8a-2c0a-7d94-ab9c-5d46a808af72",
		Args:    arguments(&account, &token), RunE: l.administer(func(ctx context.Context, m *app.Modules) error {
			if err := m.Services.Revoke(ctx, account, token); err != nil {
				return err
			}
			return l.process.say("%s was revoked", token)
		}),
	}
}
