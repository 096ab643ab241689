package commands

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"kontor/locales"
	"kontor/modules/app"
	"kontor/modules/developer/playground/seed"
	"kontor/server/settings"
)

func (l *commandLine) seed() *cobra.Command {
	var files []string
	var export bool
	cmd := &cobra.Command{
		Use: "seed [<file>...]", Short: "Play seed files in a running sandbox, or write its state as one.",
		Long: `A seed file has requests to the API as steps, in YAML or JSON; see
docs/sandbox.md. The files are played one after the other; "-" is standard
input. The command asks the sandbox by the socket in its data directory and
needs no token. A step that names no user is one of the first administrator.
Afterwards, "kontor reset" goes back to the state that the files have made.

The same file makes the same ids in each new sandbox, and the same times if it
has a "start".

--export prints the state of the sandbox as a seed file, as far as the API can
make it.`,
		Example: "kontor seed people.yaml customers.yaml\nkontor seed --export >bank.yaml",
		Args: func(cmd *cobra.Command, given []string) error {
			files = given
			switch {
			case len(files) == 0 && !export:
				return usageError(cmd, errors.New("name a file"))
			case len(files) > 0 && export:
				return usageError(cmd, errors.New("--export prints the file; it takes none"))
			}
			return nil
		},
		RunE: l.run(func(ctx context.Context, p Process, r *settings.Result) error {
			p.warn(r)
			if export {
				return p.askSandbox(ctx, r, keyRequest{Command: askExport})
			}
			for _, name := range files { // in their order, up to the first one that fails
				data, err := p.seedFile(name)
				if err == nil {
					err = p.askSandbox(ctx, r, keyRequest{Command: askSeed, File: string(data)})
				}
				if err != nil {
					return fmt.Errorf("%s: %w", name, err)
				}
			}
			return nil
		}),
	}
	cmd.Flags().BoolVar(&export, "export", false, "Print the present state as a seed file.")
	return cmd
}

func (p Process) seedFile(name string) ([]byte, error) {
	file, err := p.open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close() // opened for reading
	data, err := io.ReadAll(io.LimitReader(file, seed.MaxBytes+1))
	if err == nil && len(data) > seed.MaxBytes {
		err = fmt.Errorf("the file is larger than %d bytes", seed.MaxBytes)
	}
	return data, err
}

func (l *commandLine) trigger() *cobra.Command {
	var scenario string
	var set []string
	cmd := &cobra.Command{
		Use: "trigger [<scenario>]", Short: "Play a scenario in a running sandbox, or list the scenarios.",
		Long: `A scenario makes new records and causes events, such as the verification of a
customer. The command prints what it made, and which events and calls of
webhooks followed. It asks the sandbox by the socket in its data directory and
needs no token.`,
		Example: "kontor trigger\nkontor trigger kyc.approved --set customer.country=DEU",
		Args:    arguments(&scenario), ValidArgs: seed.Scenarios(),
		RunE: l.run(func(ctx context.Context, p Process, r *settings.Result) error {
			p.warn(r)
			request := keyRequest{Command: askScenarios, Language: languageOf(p.Environ)}
			if scenario != "" {
				request.Command, request.Scenario, request.Set = askTrigger, scenario, map[string]string{}
			}
			for _, pair := range set {
				name, value, ok := strings.Cut(pair, "=")
				if !ok || request.Set == nil {
					return fmt.Errorf("--set needs a scenario and name=value, not %q", pair)
				}
				request.Set[name] = value
			}
			return p.askSandbox(ctx, r, request)
		}),
	}
	cmd.Flags().StringArrayVar(&set, "set", nil, "Another `name=value` than that of the scenario; may be repeated. The list shows the names.")
	return cmd
}

// languageOf returns the language of the locale in an environment.
func languageOf(environ []string) string {
	for _, name := range []string{"LC_ALL=", "LC_MESSAGES=", "LANG="} {
		for _, variable := range environ {
			if locale, ok := strings.CutPrefix(variable, name); ok && len(locale) >= 2 {
				if locales.Known(locale[:2]) {
					return locale[:2]
				}
				return locales.Default
			}
		}
	}
	return locales.Default
}

// playSeed plays a seed file, and says what each step did.
func (k keyRequest) playSeed(ctx context.Context, m *app.Modules, say func(string, ...any)) error {
	file, err := seed.Parse([]byte(k.File))
	if err != nil {
		return inWords(m, seed.Wrong(err))
	}
	played, err := m.Seed.Play(ctx, file)
	if err != nil {
		return inWords(m, err)
	}
	saySteps(played, say)
	say("%d steps were played (run %d); the sandbox is at %s, and resets go back to this state", len(played.Steps), played.Run, played.Now)
	return nil
}

func saySteps(played seed.Played, say func(string, ...any)) {
	for _, step := range played.Steps {
		record := ""
		if step.RecordID != nil {
			record = "  " + *step.RecordID
		}
		say("  %d  %-20s  %s%s", step.Status, step.ID, printable(step.Request), record)
	}
}

// listScenarios lists the scenarios, one on a line.
func (k keyRequest) listScenarios(m *app.Modules, say func(string, ...any)) error {
	list, err := m.Seed.List(k.Language)
	if err != nil {
		return err
	}
	for _, one := range list.Data {
		values := make([]string, 0, len(one.Values))
		for _, v := range one.Values {
			values = append(values, v.Name+"="+v.Default)
		}
		shown := ""
		if len(values) > 0 {
			shown = "  [" + strings.Join(values, ", ") + "]"
		}
		say("%-32s %s%s", one.Name, one.Summary, shown)
	}
	return nil
}

// playScenario plays a scenario, and says what it made and what followed.
func (k keyRequest) playScenario(ctx context.Context, m *app.Modules, say func(string, ...any)) error {
	in := seed.TriggerInput{Scenario: k.Scenario, Set: k.Set}
	var done seed.Triggered
	err := validated(&in)
	if err == nil {
		done, err = m.Seed.Trigger(ctx, in)
	}
	if err != nil {
		return inWords(m, err)
	}
	say("steps of %s:", done.Scenario)
	saySteps(done.Played, say)
	say("events:")
	for _, e := range done.Events {
		say("  %-32s %s", e.Type, e.RecID)
	}
	if len(done.Webhooks) > 0 {
		say("calls of webhooks:")
	}
	for _, call := range done.Webhooks {
		answer := ""
		if call.Response != nil {
			answer = fmt.Sprintf(" (%d)", *call.Response)
		}
		say("  %-32s %s%s  webhook %s", call.Type, call.Status, answer, call.WebhookID)
	}
	return nil
}
