package commands

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"kontor/modules/app"
	"kontor/modules/identity/auth"
	"kontor/server/settings"
	"kontor/store"
)

// apiKeys returns the commands about API keys. A server with a data directory
// must be stopped, because it holds the directory.
func (l *commandLine) apiKeys() *cobra.Command {
	return group("apikey", "Create, list and revoke API keys.", l.createAPIKey(), l.listAPIKeys(), l.revokeAPIKey())
}

type apiKeyCreateCommand struct {
	Name, Expires string
	Scope         []string
}

func (l *commandLine) createAPIKey() *cobra.Command {
	c := &apiKeyCreateCommand{}
	cmd := &cobra.Command{
		Use: "create <name>", Short: "Create an API key and print it; it cannot be shown again.",
		Long:    "The name says what the key is for.\n\n" + stoppedHelp,
		Example: `kontor apikey create "web site" --scope=users.register --expires=2027-01-31`, Args: arguments(&c.Name), RunE: l.run(c),
	}
	cmd.Flags().StringSliceVar(&c.Scope, "scope", nil, "`Name` of an endpoint that the key may call, such as users.register; may be repeated. Default: all endpoints that accept a key.")
	cmd.Flags().StringVar(&c.Expires, "expires", "", "`Time` of expiry, such as 2027-01-31 (UTC) or 2027-01-31T08:00:00Z. Default: never.")
	return cmd
}

// limits reads the flags --scope and --expires.
func (c apiKeyCreateCommand) limits() (l auth.KeyLimits, err error) {
	l.Scopes = c.Scope
	l.Expires, err = parseExpiry(c.Expires)
	return l, err
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

// Run creates a key. It prints only the key, so that a script can read it.
func (c apiKeyCreateCommand) Run(ctx context.Context, p Process, r *settings.Result) error {
	if strings.TrimSpace(c.Name) == "" {
		return errors.New("the name of the key is empty; enter what the key is for")
	}
	limits, err := c.limits()
	if err != nil {
		return err
	}
	return administer(ctx, p, r, func(ctx context.Context, m *app.Modules) error {
		created, err := m.Auth.CreateKey(ctx, c.Name, limits)
		if err != nil {
			return err
		}
		_, err = fmt.Fprintln(p.Stdout, created.Key)
		return err
	})
}

type apiKeyListCommand struct{ JSON bool }

func (l *commandLine) listAPIKeys() *cobra.Command {
	c := &apiKeyListCommand{}
	cmd := &cobra.Command{
		Use: "list", Short: "List all API keys, without their secrets.", Long: stoppedHelp,
		Example: "kontor apikey list --json", Args: arguments(), RunE: l.run(c),
	}
	cmd.Flags().BoolVar(&c.JSON, "json", false, "Print JSON.")
	return cmd
}

// Run lists the keys.
func (c apiKeyListCommand) Run(ctx context.Context, p Process, r *settings.Result) error {
	return administer(ctx, p, r, func(ctx context.Context, m *app.Modules) error {
		keys, err := allKeys(ctx, m.Auth)
		if err != nil {
			return err
		}
		if c.JSON {
			out := json.NewEncoder(p.Stdout)
			out.SetIndent("", "  ")
			return out.Encode(keys)
		}
		table := tabwriter.NewWriter(p.Stdout, 0, 0, 2, ' ', 0)
		fmt.Fprintln(table, "ID\tCREATED\tLAST USED\tREVOKED\tEXPIRES\tSCOPES\tNAME")
		for _, k := range keys {
			fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", k.ID, k.CreatedAt, timeOrDash(k.LastUsedAt), timeOrDash(k.RevokedAt),
				timeOrDash(k.ExpiresAt), strings.Join(k.Scopes, ","), printable(k.Name))
		}
		return table.Flush()
	})
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

func allKeys(ctx context.Context, service *auth.Service) ([]auth.APIKey, error) {
	return allRows(ctx, service.Keys)
}

type apiKeyRevokeCommand struct{ ID string }

func (l *commandLine) revokeAPIKey() *cobra.Command {
	c := &apiKeyRevokeCommand{}
	return &cobra.Command{
		Use: "revoke <id>", Short: "Revoke an API key.", Long: "\"kontor apikey list\" prints the ids of the keys.\n\n" + stoppedHelp,
		Example: "kontor apikey revoke 01a1fb8a-2c0a-7d94-ab9c-5d46a808af71", Args: arguments(&c.ID), RunE: l.run(c),
	}
}

// Run revokes the key.
func (c apiKeyRevokeCommand) Run(ctx context.Context, p Process, r *settings.Result) error {
	return administer(ctx, p, r, func(ctx context.Context, m *app.Modules) error {
		if err := m.Auth.RevokeKey(ctx, c.ID); err != nil {
			return err
		}
		_, err := fmt.Fprintf(p.Stdout, "%s was revoked\n", c.ID)
		return err
	})
}
