package commands

import (
	"context"
	"fmt"

	"kontor/modules/app"
	"kontor/modules/factors"
	"kontor/server/settings"
)

type userFactorsCommand struct {
	Login string `arg:"" help:"E-mail address, phone number, user name or id."`
}

// Help is shown by "kontor user factors --help".
func (userFactorsCommand) Help() string { return stoppedHelp }

func (userFactorsCommand) examples() []string {
	return []string{"kontor user factors anna@bank.example"}
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

type userResetFactorsCommand struct {
	Login string `arg:"" help:"E-mail address, phone number, user name or id."`
}

// Help is shown by "kontor user reset-factors --help".
func (userResetFactorsCommand) Help() string {
	return "Make sure first that the request comes from the user: afterwards the password alone is enough to sign in. The user is told.\n\n" + stoppedHelp
}

func (userResetFactorsCommand) examples() []string {
	return []string{"kontor user reset-factors anna@bank.example"}
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
