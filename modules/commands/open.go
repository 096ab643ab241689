package commands

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"os"
	"os/exec"
	"runtime"
	"strings"

	"github.com/spf13/cobra"

	"kontor/modules/app"
	"kontor/server/apierr"
	"kontor/server/settings"
)

type openCommand struct {
	User  string
	Print bool
}

func (l *commandLine) open() *cobra.Command {
	c := &openCommand{}
	cmd := &cobra.Command{
		Use: "open", Short: "Open the console of the running server in a browser, signed in.",
		Long: `The command asks the server, by the socket in its data directory, for a link
that signs in a user once, within a minute, on this machine. Whoever may use
the socket can also read the master key. The link stands for the password: a
user with a second factor is asked for it. The session is in the audit trail.
The server must be reached as localhost, without a proxy.

The link is printed if no browser can be started.`,
		Example: "kontor open\nkontor open --user anna@bank.example\nkontor open --print", Args: arguments(), RunE: l.run(c),
	}
	cmd.Flags().StringVar(&c.User, "user", "", "Sign-in value or id of the `user`; default: the administrator of the first start.")
	cmd.Flags().BoolVar(&c.Print, "print", false, "Print the link, and start no browser.")
	return cmd
}

// Run asks for a link and opens it.
func (c openCommand) Run(ctx context.Context, p Process, r *settings.Result) error {
	if err := notShared(r, "there is no socket; sign in with a password"); err != nil {
		return err
	}
	p.warn(r)
	user := c.User
	if user == "" {
		user = app.FirstAdmin(r.Settings.Secrets.AdminEmail)
	}
	link := ""
	err := askServer(ctx, r.Settings.Data.Dir, keyRequest{Command: askLink, User: user}, func(a controlAnswer) { link = a.Text })
	if errors.Is(err, errNoServer) {
		return fmt.Errorf("no server is running in %s; start it with: kontor serve --data.dir %[1]s", r.Settings.Data.Dir)
	}
	if err != nil {
		return err
	}
	if !c.Print && startBrowser(ctx, p.Environ, link) == nil {
		_, err := fmt.Fprintln(p.Stdout, "The browser opens the console.")
		return err
	}
	_, err = fmt.Fprintf(p.Stdout, "Open this link within a minute. It signs in %s, once:\n\n%s\n", user, link)
	return err
}

// startBrowser opens a link with the program that the system uses for links. The link passes through no shell. Other users of the
// machine may see it among the arguments of the program while that runs; it is of no use to them on another machine, or later.
func startBrowser(ctx context.Context, environ []string, link string) error {
	name, args := "xdg-open", []string{link}
	switch runtime.GOOS {
	case "darwin":
		name = "open"
	case "windows":
		name, args = "rundll32", []string{"url.dll,FileProtocolHandler", link}
	default:
		if !hasDisplay(environ) {
			return errors.New("there is no display")
		}
	}
	program, err := exec.LookPath(name)
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, program, args...) //nolint:gosec // the program is one of the three above, from PATH
	cmd.Env = append(os.Environ(), environ...)
	return cmd.Run()
}

func hasDisplay(environ []string) bool {
	for _, variable := range environ {
		if name, value, _ := strings.Cut(variable, "="); value != "" && (name == "DISPLAY" || name == "WAYLAND_DISPLAY") {
			return true
		}
	}
	return false
}

// makeLink says a link that signs in a user.
func (k keyRequest) makeLink(ctx context.Context, m *app.Modules, say func(string, ...any)) error {
	base, err := url.Parse(m.Settings.Server.BaseURL)
	if err != nil || !isLocal(base.Hostname()) || len(m.Settings.Server.TrustedProxies) > 0 {
		return errors.New("other machines or a proxy reach this server; the link is for a server at localhost alone: sign in with a password")
	}
	code, err := m.Auth.NewLocalLink(ctx, k.User)
	if errors.Is(err, apierr.UserNotFound) {
		return fmt.Errorf("no active user signs in as %q; name one with --user", k.User)
	}
	if err != nil {
		return err
	}
	say("%s/signin#local=%s", strings.TrimSuffix(base.String(), "/"), code)
	return nil
}

// isLocal reports whether a host is this machine.
func isLocal(host string) bool {
	address, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && address.IsLoopback()
}
