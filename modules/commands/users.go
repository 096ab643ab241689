package commands

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"kontor/locales"
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

func (l *commandLine) createUser() *cobra.Command {
	var user directory.NewUser
	cmd := &cobra.Command{
		Use: "create <login>", Short: "Create a user who can sign in at once.",
		Long:    "The login is an e-mail address, a phone number or a user name.\n\n" + passwordHelp,
		Example: "kontor user create anna@bank.example --role=Advisor --language=de",
		Args:    arguments(&user.Value), RunE: l.run(func(ctx context.Context, p Process, r *settings.Result) (err error) {
			if !locales.Known(user.Language) {
				return fmt.Errorf("--language must be one of %s, not %q", strings.Join(locales.Languages(), ", "), user.Language)
			}
			if user.Password, err = p.readPassword(); err != nil {
				return err
			}
			return administer(ctx, p, r, func(ctx context.Context, m *app.Modules) error {
				u, err := m.Users.Create(ctx, user)
				if err != nil {
					return err
				}
				return p.printUser(user.Value, u)
			})
		}),
	}
	cmd.Flags().StringSliceVar(&user.Roles, "role", []string{"Customer"}, "Role `name`, such as Administrator, Advisor or Customer; may be repeated.")
	cmd.Flags().StringVar(&user.Language, "language", "en", "Language of messages to the user: en, de, fr or it.")
	cmd.Flags().StringVar(&user.DisplayName, "display-name", "", "`Name` that others see, such as \"Anna Keller\".")
	suggest(cmd, "role", rbac.BuiltInNames()...)
	suggest(cmd, "language", locales.Languages()...)
	return cmd
}

func (l *commandLine) setPassword() *cobra.Command {
	var login string
	return &cobra.Command{
		Use: "password <login>", Short: "Set the password of a user and end all their sessions.", Long: loginHelp + passwordHelp,
		Example: "kontor user password anna@bank.example", Args: arguments(&login),
		RunE: l.run(func(ctx context.Context, p Process, r *settings.Result) error {
			password, err := p.readPassword()
			if err != nil {
				return err
			}
			return administer(ctx, p, r, func(ctx context.Context, m *app.Modules) error {
				if _, err := m.Users.SetPassword(ctx, login, password); err != nil {
					return err
				}
				return p.say("%s has a new password; all their sessions were ended", login)
			})
		}),
	}
}

func (l *commandLine) setRoles() *cobra.Command {
	var login string
	var roles []string
	var none bool
	cmd := &cobra.Command{
		Use: "role <login> [<role>...]", Short: "Show or replace the roles of a user.",
		Long:    loginHelp + "The given roles replace all present ones. Without roles, the command prints\nthe present ones.\n\n" + stoppedHelp,
		Example: "kontor user role anna@bank.example\nkontor user role anna@bank.example Advisor Customer",
		Args:    arguments(&login, &roles), RunE: l.run(func(ctx context.Context, p Process, r *settings.Result) error {
			if none && len(roles) > 0 {
				return errors.New("--none cannot be combined with roles; use one of them")
			}
			return administer(ctx, p, r, func(ctx context.Context, m *app.Modules) error {
				u, err := m.Users.Find(ctx, m.DB, login)
				if err == nil && (none || len(roles) > 0) {
					u, err = m.Users.SetRoles(ctx, login, roles)
				}
				if err != nil {
					return err
				}
				return p.printUser(login, u)
			})
		}),
		ValidArgsFunction: func(cmd *cobra.Command, words []string, begun string) ([]cobra.Completion, cobra.ShellCompDirective) {
			if len(words) == 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return suggestion("Role", rbac.BuiltInNames())(cmd, words, begun)
		},
	}
	cmd.Flags().BoolVar(&none, "none", false, "Remove all roles.")
	return cmd
}

func (p Process) printUser(login string, u directory.User) error {
	return p.say("%s  id %s  status %s  roles %s", login, u.ID, u.Status, cmp.Or(strings.Join(u.Roles, ", "), "none"))
}

func (l *commandLine) listFactors() *cobra.Command {
	var login string
	return &cobra.Command{
		Use: "factors <login>", Short: "List the second factors of a user.", Long: loginHelp + stoppedHelp,
		Example: "kontor user factors anna@bank.example", Args: arguments(&login),
		RunE: l.administer(func(ctx context.Context, m *app.Modules) error {
			u, err := m.Users.Find(ctx, m.DB, login)
			if err != nil {
				return err
			}
			all, err := m.Factors.OfUser(ctx, u.ID)
			if err == nil && len(all) == 0 {
				err = l.process.say("%s has no second factor", login)
			}
			for _, f := range all {
				err = errors.Join(err, l.process.printFactor(f))
			}
			return err
		}),
	}
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
	return p.say("%s  %-14s  %-7s  created %s  %s  %q%s", f.ID, f.Type, f.Status, f.CreatedAt, used, f.Name, left)
}

func (l *commandLine) resetFactors() *cobra.Command {
	var login string
	return &cobra.Command{
		Use: "reset-factors <login>", Short: "Remove all second factors of a user who has lost them, and end all their sessions.",
		Long: `Make sure first that the request comes from the user: afterwards the password
alone is enough to sign in. The user is told.

` + loginHelp + stoppedHelp,
		Example: "kontor user reset-factors anna@bank.example", Args: arguments(&login),
		RunE: l.administer(func(ctx context.Context, m *app.Modules) error {
			u, err := m.Users.Find(ctx, m.DB, login)
			if err != nil {
				return err
			}
			removed, err := m.Factors.Reset(ctx, u.ID)
			switch {
			case err != nil:
				return err
			case removed == 0:
				return l.process.say("%s has no second factor; nothing was changed", login)
			}
			return l.process.say("%s has no second factor any more; all their sessions were ended", login)
		}),
	}
}
