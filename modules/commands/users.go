package commands

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"kontor/modules/app"
	"kontor/modules/directory"
	"kontor/server/settings"
)

// userCommand groups the commands about users. A server with a data directory must be stopped, because it holds the directory.
type userCommand struct {
	Create   userCreateCommand   `cmd:"" help:"Create a user who can sign in at once."`
	Password userPasswordCommand `cmd:"" help:"Set the password of a user and end all their sessions."`
	Role     userRoleCommand     `cmd:"" help:"Show or replace the roles of a user."`

	Factors      userFactorsCommand      `cmd:"" help:"List the second factors of a user."`
	ResetFactors userResetFactorsCommand `cmd:"" help:"Remove all second factors of a user who has lost them, and end all their sessions."`
}

const (
	stoppedHelp  = "Stop the server first. While it runs, use the API instead. With data.url the nodes may be running."
	passwordHelp = "At a terminal, the command prompts for the password. Otherwise it reads the first line of standard input.\n\n" + stoppedHelp
)

type userCreateCommand struct {
	Login    string   `arg:"" help:"E-mail address, phone number or user name."`
	Role     []string `help:"Role, such as Administrator, Advisor or Customer; may be repeated." default:"Customer" placeholder:"NAME" complete:"roles"`
	Language string   `help:"Language of messages to the user." enum:"en,de,fr,it" default:"en" placeholder:"LANGUAGE"`

	DisplayName string `help:"Name that others see, such as \"Anna Keller\"." placeholder:"NAME"`
}

// Help is shown by "kontor user create --help".
func (userCreateCommand) Help() string { return passwordHelp }

func (userCreateCommand) examples() []string {
	return []string{"kontor user create anna@bank.example --role=Advisor --language=de"}
}

// Run creates the user.
func (c userCreateCommand) Run(ctx context.Context, p Process, r *settings.Result) error {
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

type userPasswordCommand struct {
	Login string `arg:"" help:"E-mail address, phone number, user name or id."`
}

// Help is shown by "kontor user password --help".
func (userPasswordCommand) Help() string { return passwordHelp }

func (userPasswordCommand) examples() []string {
	return []string{"kontor user password anna@bank.example"}
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
	Login string   `arg:"" help:"E-mail address, phone number, user name or id."`
	Roles []string `arg:"" optional:"" help:"New roles, which replace all present ones. Without roles, the command prints the present ones." complete:"roles"`
	None  bool     `help:"Remove all roles."`
}

// Help is shown by "kontor user role --help".
func (userRoleCommand) Help() string { return stoppedHelp }

func (userRoleCommand) examples() []string {
	return []string{"kontor user role anna@bank.example", "kontor user role anna@bank.example Advisor Customer"}
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
