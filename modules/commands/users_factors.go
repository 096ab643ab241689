package commands

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"kontor/modules/app"
	"kontor/modules/identity/factors"
	"kontor/server/settings"
)

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
