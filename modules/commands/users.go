package commands

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"kontor/modules/app"
	"kontor/modules/identity/directory"
	"kontor/modules/identity/factors"
	"kontor/modules/identity/rbac"
	"kontor/server/settings"
)

// users returns the commands about users. A server with a data directory must be stopped, because it holds the directory.
func (l *commandLine) users() *cobra.Command {
	return group("user", "Create users, set their passwords and roles, and reset their second factors.",
		l.createUser(), l.setPassword(), l.setRoles(), l.listFactors(), l.resetFactors())
}

const (
	stoppedHelp = `Stop the server first. While it runs, use the API instead. With data.url the
nodes may be running.`
	loginHelp    = "The login is an e-mail address, a phone number, a user name or an id.\n\n"
	passwordHelp = `At a terminal, the command prompts for the password. Otherwise it reads the
first line of standard input.

` + stoppedHelp
)

// languages are the languages of messages.
var languages = []string{"en", "de", "fr", "it"}

type userCreateCommand struct {
	Login, Language, DisplayName string
	Role                         []string
}

func (l *commandLine) createUser() *cobra.Command {
	c := &userCreateCommand{}
	cmd := &cobra.Command{
		Use: "create <login>", Short: "Create a user who can sign in at once.",
		Long:    "The login is an e-mail address, a phone number or a user name.\n\n" + passwordHelp,
		Example: "kontor user create anna@bank.example --role=Advisor --language=de",
		Args:    arguments(&c.Login), RunE: l.run(c),
	}
	cmd.Flags().StringSliceVar(&c.Role, "role", []string{"Customer"}, "Role `name`, such as Administrator, Advisor or Customer; may be repeated.")
	cmd.Flags().StringVar(&c.Language, "language", "en", "Language of messages to the user: en, de, fr or it.")
	cmd.Flags().StringVar(&c.DisplayName, "display-name", "", "`Name` that others see, such as \"Anna Keller\".")
	suggest(cmd, "role", rbac.BuiltInNames()...)
	suggest(cmd, "language", languages...)
	return cmd
}

// Run creates the user.
func (c userCreateCommand) Run(ctx context.Context, p Process, r *settings.Result) error {
	if !slices.Contains(languages, c.Language) {
		return fmt.Errorf("--language must be one of %s, not %q", strings.Join(languages, ", "), c.Language)
	}
	password, err := p.readPassword()
	if err != nil {
		return err
	}
	return administer(ctx, p, r, func(ctx context.Context, m *app.Modules) error {
		u, err := m.Users.Create(ctx, directory.NewUser{Value: c.Login, Password: password, Roles: c.Role, Language: c.Language,
			DisplayName: c.DisplayName})
		if err != nil {
			return err
		}
		return p.printUser(c.Login, u)
	})
}

type userPasswordCommand struct{ Login string }

func (l *commandLine) setPassword() *cobra.Command {
	c := &userPasswordCommand{}
	return &cobra.Command{
		Use: "password <login>", Short: "Set the password of a user and end all their sessions.", Long: loginHelp + passwordHelp,
		Example: "kontor user password anna@bank.example", Args: arguments(&c.Login), RunE: l.run(c),
	}
}

// Run sets the password.
func (c userPasswordCommand) Run(ctx context.Context, p Process, r *settings.Result) error {
	password, err := p.readPassword()
	if err != nil {
		return err
	}
	return administer(ctx, p, r, func(ctx context.Context, m *app.Modules) error {
		if _, err := m.Users.SetPassword(ctx, c.Login, password); err != nil {
			return err
		}
		_, err := fmt.Fprintf(p.Stdout, "%s has a new password; all their sessions were ended\n", c.Login)
		return err
	})
}

type userRoleCommand struct {
	Login string
	Roles []string
	None  bool
}

func (l *commandLine) setRoles() *cobra.Command {
	c := &userRoleCommand{}
	cmd := &cobra.Command{
		Use: "role <login> [<role>...]", Short: "Show or replace the roles of a user.",
		Long:    loginHelp + "The given roles replace all present ones. Without roles, the command prints\nthe present ones.\n\n" + stoppedHelp,
		Example: "kontor user role anna@bank.example\nkontor user role anna@bank.example Advisor Customer",
		Args:    arguments(&c.Login, &c.Roles), RunE: l.run(c),
		ValidArgsFunction: func(cmd *cobra.Command, words []string, begun string) ([]cobra.Completion, cobra.ShellCompDirective) {
			if len(words) == 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return suggestion("Role", rbac.BuiltInNames())(cmd, words, begun)
		},
	}
	cmd.Flags().BoolVar(&c.None, "none", false, "Remove all roles.")
	return cmd
}

// Run shows or replaces the roles.
func (c userRoleCommand) Run(ctx context.Context, p Process, r *settings.Result) error {
	if c.None && len(c.Roles) > 0 {
		return errors.New("--none cannot be combined with roles; use one of them")
	}
	return administer(ctx, p, r, func(ctx context.Context, m *app.Modules) error {
		if len(c.Roles) == 0 && !c.None {
			u, err := m.Users.Find(ctx, m.DB, c.Login)
			if err != nil {
				return err
			}
			return p.printUser(c.Login, u)
		}
		u, err := m.Users.SetRoles(ctx, c.Login, c.Roles)
		if err != nil {
			return err
		}
		return p.printUser(c.Login, u)
	})
}

func (p Process) printUser(login string, u directory.User) error {
	roles := strings.Join(u.Roles, ", ")
	if roles == "" {
		roles = "none"
	}
	_, err := fmt.Fprintf(p.Stdout, "%s  id %s  status %s  roles %s\n", login, u.ID, u.Status, roles)
	return err
}

type userFactorsCommand struct{ Login string }

func (l *commandLine) listFactors() *cobra.Command {
	c := &userFactorsCommand{}
	return &cobra.Command{
		Use: "factors <login>", Short: "List the second factors of a user.", Long: loginHelp + stoppedHelp,
		Example: "kontor user factors anna@bank.example", Args: arguments(&c.Login), RunE: l.run(c),
	}
}

// Run lists the factors.
func (c userFactorsCommand) Run(ctx context.Context, p Process, r *settings.Result) error {
	return administer(ctx, p, r, func(ctx context.Context, m *app.Modules) error {
		u, err := m.Users.Find(ctx, m.DB, c.Login)
		if err != nil {
			return err
		}
		all, err := m.Factors.OfUser(ctx, u.ID)
		if err != nil {
			return err
		}
		if len(all) == 0 {
			_, err = fmt.Fprintf(p.Stdout, "%s has no second factor\n", c.Login)
			return err
		}
		for _, f := range all {
			if err := p.printFactor(f); err != nil {
				return err
			}
		}
		return nil
	})
}

// printFactor prints a line about a factor. Names are quoted: a user may have chosen one that controls the terminal.
func (p Process) printFactor(f factors.Factor) error {
	used := "never used"
	if f.LastUsedAt != nil {
		used = "last used " + f.LastUsedAt.String()
	}
	left := ""
	if f.Remaining != nil {
		left = fmt.Sprintf("  %d left", *f.Remaining)
	}
	_, err := fmt.Fprintf(p.Stdout, "%s  %-14s  %-7s  created %s  %s  %q%s\n", f.ID, f.Type, f.Status, f.CreatedAt, used, f.Name, left)
	return err
}

type userResetFactorsCommand struct{ Login string }

func (l *commandLine) resetFactors() *cobra.Command {
	c := &userResetFactorsCommand{}
	return &cobra.Command{
		Use: "reset-factors <login>", Short: "Remove all second factors of a user who has lost them, and end all their sessions.",
		Long: `Make sure first that the request comes from the user: afterwards the password
alone is enough to sign in. The user is told.

` + loginHelp + stoppedHelp,
		Example: "kontor user reset-factors anna@bank.example", Args: arguments(&c.Login), RunE: l.run(c),
	}
}

// Run removes the factors.
func (c userResetFactorsCommand) Run(ctx context.Context, p Process, r *settings.Result) error {
	return administer(ctx, p, r, func(ctx context.Context, m *app.Modules) error {
		u, err := m.Users.Find(ctx, m.DB, c.Login)
		if err != nil {
			return err
		}
		removed, err := m.Factors.Reset(ctx, u.ID)
		if err != nil {
			return err
		}
		if removed == 0 {
			_, err = fmt.Fprintf(p.Stdout, "%s has no second factor; nothing was changed\n", c.Login)
			return err
		}
		_, err = fmt.Fprintf(p.Stdout, "%s has no second factor any more; all their sessions were ended\n", c.Login)
		return err
	})
}
