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

	"kontor/modules/app"
	"kontor/modules/auth"
	"kontor/modules/kit/list"
	"kontor/server/settings"
	"kontor/store"
)

// apiKeyCommand groups what an operator does with API keys. As with users, the server must be stopped first.
type apiKeyCommand struct {
	Create apiKeyCreateCommand `cmd:"" help:"Make a key and print it; it cannot be shown again."`
	List   apiKeyListCommand   `cmd:"" help:"List all keys, without the keys themselves."`
	Revoke apiKeyRevokeCommand `cmd:"" help:"Make a key worthless."`
}

type apiKeyCreateCommand struct {
	Name    string   `arg:"" help:"What the key is for."`
	Scope   []string `help:"Endpoint that the key may call, such as users.register; may be repeated. Without it: all that take a key." placeholder:"NAME"`
	Expires string   `help:"When the key ends, such as 2027-01-31 (UTC) or 2027-01-31T08:00:00Z. Without it: never." placeholder:"TIME"`
}

// limits reads the flags.
func (c apiKeyCreateCommand) limits() (l auth.KeyLimits, err error) {
	l.Scopes = c.Scope
	if c.Expires == "" {
		return l, nil
	}
	at, err := time.Parse(time.DateOnly, c.Expires)
	if err != nil {
		at, err = time.Parse(time.RFC3339, c.Expires)
	}
	if err != nil {
		return l, fmt.Errorf("--expires=%s is neither a date such as 2027-01-31 nor a time such as 2027-01-31T08:00:00Z", c.Expires)
	}
	end := store.TimeOf(at)
	l.Expires = &end
	return l, nil
}

// Run makes a key. Nothing but the key is printed, so that a script can take it.
func (c apiKeyCreateCommand) Run(ctx context.Context, p Process, r *settings.Result) error {
	if strings.TrimSpace(c.Name) == "" {
		return errors.New("the name of the key is empty: say what it is for")
	}
	limits, err := c.limits()
	if err != nil {
		return err
	}
	return administer(ctx, p, r, func(ctx context.Context, m *app.Modules) error {
		made, err := m.Auth.CreateKey(ctx, c.Name, limits)
		if err != nil {
			return err
		}
		_, err = fmt.Fprintln(p.Stdout, made.Key)
		return err
	})
}

type apiKeyListCommand struct {
	JSON bool `name:"json" help:"Print JSON."`
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
			fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", k.ID, k.CreatedAt, moment(k.LastUsedAt), moment(k.RevokedAt),
				moment(k.ExpiresAt), strings.Join(k.Scopes, ","), printable(k.Name))
		}
		return table.Flush()
	})
}

// printable keeps what others have named from moving the cursor of the terminal.
func printable(name string) string {
	quoted := strconv.Quote(name)
	if quoted == `"`+name+`"` {
		return name
	}
	return quoted
}

func moment(t *store.Time) string {
	if t == nil {
		return "-"
	}
	return t.String()
}

const keysPerPage = 100

func allKeys(ctx context.Context, service *auth.Service) ([]auth.APIKey, error) {
	all := []auth.APIKey{}
	for {
		query, err := list.Parse(map[string][]string{
			"limit": {strconv.Itoa(keysPerPage)}, "offset": {strconv.Itoa(len(all))}, "sort": {"created_at"},
		})
		if err != nil {
			return nil, err
		}
		page, err := service.Keys(ctx, query)
		if err != nil {
			return nil, err
		}
		all = append(all, page.Data.Rows...)
		if !page.HasMore {
			return all, nil
		}
	}
}

type apiKeyRevokeCommand struct {
	ID string `arg:"" help:"The id of the key, as listed."`
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
