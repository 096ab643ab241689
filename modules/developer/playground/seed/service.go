package seed

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"net/http"
	"sync"
	"time"

	"kontor/locales"
	"kontor/server/access"
	"kontor/server/apierr"
	"kontor/server/endpoint"
	"kontor/server/ratelimit"
	"kontor/store"
)

// Options are what the service needs of the others.
type Options struct {
	DB    *store.DB
	Clock *store.ShiftedClock // of the database
	Texts *locales.Bundle
	Log   *slog.Logger
	// Front builds a server of the API without rate limits.
	Front    func() (Front, error)
	People   People
	Sessions Sessions
	// Busy is held while files are played or the clock is moved.
	Busy *sync.Mutex
	// Gate is held by regular runs of jobs for reading. They wait while a file is played: what they make would change its ids.
	Gate *sync.RWMutex
	// Advance moves the clock to a time, and runs the jobs. It returns an error of apierr for a time that has passed.
	Advance func(ctx context.Context, to time.Time) error
	// Settle waits until the calls of webhooks that are due were tried.
	Settle func(ctx context.Context) error
	// Keep makes the state after a file the one that resets go back to; nil: there is no reset.
	Keep func(ctx context.Context) error
}

// People finds users.
type People interface {
	// FindLogin returns the id of the user with an id or a validated credential. It returns store.ErrNotFound.
	FindLogin(ctx context.Context, login string) (userID string, err error)
	// ActivePeople reports which of the users are active people.
	ActivePeople(ctx context.Context, q store.Querier, ids ...string) (map[string]bool, error)
}

// Sessions opens sessions.
type Sessions interface {
	OpenSession(ctx context.Context, tx *store.Tx, userID string) (token string, expiresIn int, err error)
}

// Service plays seed files and scenarios.
type Service struct{ Options }

// New returns the service.
func New(o Options) *Service { return &Service{Options: o} }

const (
	seedPath      = "/v1/sandbox/seed"
	triggerPath   = "/v1/sandbox/trigger"
	scenariosPath = "/v1/sandbox/scenarios"
)

var media = []string{"application/yaml", "application/json"}

// Endpoints returns the rows of the module. They are for administrators: no other role gets a grant.
func (s *Service) Endpoints() []endpoint.Endpoint {
	rows := []endpoint.Endpoint{
		{Name: "sandbox.seed", Method: http.MethodPost, Path: seedPath, Summary: "Play a seed file",
			Faults: []apierr.Kind{apierr.SandboxBusy, apierr.StepFailed, apierr.ClockBack},
			Doc:    endpoint.Doc{Body: shownFile{}, Description: seedDescription},
			Handle: endpoint.Upload(http.StatusOK, media, s.seed)},
		{Name: "sandbox.trigger", Method: http.MethodPost, Path: triggerPath, Summary: "Play a scenario, and list the events that followed",
			Faults: []apierr.Kind{apierr.SandboxBusy, apierr.StepFailed}, Handle: endpoint.JSON(http.StatusOK, s.Trigger)},
		{Name: "sandbox.scenarios", Method: http.MethodGet, Path: scenariosPath, Summary: "List the scenarios",
			Handle: endpoint.JSON(http.StatusOK, s.scenarios)},
	}
	for i := range rows {
		rows[i].Tag, rows[i].Limit, rows[i].Access = "Sandbox", ratelimit.Private, access.SignedIn
		rows[i].OwnTime, rows[i].PeopleOnly = true, true
		rows[i].Faults = append(rows[i].Faults, apierr.NotFound) // from other machines
	}
	return rows
}

const seedDescription = "The steps are requests to the API, sent one after the other, each as a user. A step that fails ends the run; what was done before stays. " +
	"Afterwards, resets go back to this state. The format is in docs/sandbox.md."

// shownFile describes a file to the API document.
type shownFile struct {
	Start  string         `json:"start" format:"date-time" required:"false" doc:"The clock moves there, and stands still but for one second for each step. Without it, the clock is left alone."`
	Values map[string]any `json:"values" required:"false" doc:"Values that references name."`
	Steps  []shownStep    `json:"steps" minItems:"1" maxItems:"2000"`
}

type shownStep struct {
	ID      string         `json:"id" required:"false" example:"anna" doc:"The name of the step for references such as ${anna.id}."`
	As      string         `json:"as" required:"false" example:"Advisor" doc:"A user by sign-in name or id, an earlier step that made one, a role, or anonymous. By default the caller."`
	Request string         `json:"request" example:"POST /v1/customers"`
	Query   map[string]any `json:"query" required:"false"`
	Headers map[string]any `json:"headers" required:"false"`
	Body    any            `json:"body" required:"false" type:"any"`
	File    *shownUpload   `json:"file" required:"false" example:"-" doc:"A file that is sent in place of body."`
	Expect  any            `json:"expect" required:"false" type:"any" doc:"A status, or an object with status and body, which lists members of the answer. By default any success."`
	Match   map[string]any `json:"match" required:"false" doc:"Patterns (RE2) by name. What they find in the answer is a member of it for references."`
}

type shownUpload struct {
	Name    string `json:"name" example:"passport.png"`
	Content string `json:"content" format:"byte" example:"iVBORw0KGgo="`
}

// Played is what a file has done.
type Played struct {
	Run   int64        `json:"run" doc:"How many files and scenarios were played in this bank. The ids of the records depend on it."`
	Now   store.Time   `json:"now" doc:"The time of the sandbox after the last step."`
	Steps []PlayedStep `json:"steps"`
}

// PlayedStep is what a step has done.
type PlayedStep struct {
	ID       string  `json:"id" format:"-" example:"anna"`
	Line     int     `json:"line" doc:"Where the step begins in the file."`
	Request  string  `json:"request" example:"POST /v1/customers" doc:"As the file has it."`
	Status   int     `json:"status" example:"201"`
	RecordID *string `json:"record_id" doc:"The id in the answer of a step that made a record."`
}

// maxTime is how long a file may be played, stepTime how long a step may take.
const maxTime, stepTime = 5 * time.Minute, 30 * time.Second

// seed plays the file in the body of a request.
func (s *Service) seed(ctx context.Context, r *endpoint.Request) (Played, error) {
	file, err := Parse(r.Fiber.Request().Body())
	if err != nil {
		return Played{}, Wrong(err)
	}
	return s.Play(ctx, file)
}

// Play plays a file as the caller of the context.
func (s *Service) Play(ctx context.Context, file *File) (Played, error) {
	ctx, cancel := context.WithTimeout(ctx, maxTime)
	defer cancel()
	if file.Start != nil {
		if err := s.Advance(ctx, *file.Start); err != nil {
			return Played{}, err
		}
	}
	if !s.Busy.TryLock() {
		return Played{}, apierr.SandboxBusy
	}
	defer s.Busy.Unlock()
	nothing := func(*sender) error { return nil }
	played, err := s.play(ctx, file, nothing, nothing)
	if err == nil && s.Keep != nil {
		err = s.Keep(ctx)
	}
	return played, err
}

// play plays a file. Busy is held. before is called when everything is ready, and after when all steps have succeeded.
func (s *Service) play(ctx context.Context, file *File, before, after func(d *sender) error) (Played, error) {
	s.Gate.Lock()
	defer s.Gate.Unlock()
	run, err := s.DB.CountRun(ctx)
	if err != nil {
		return Played{}, err
	}
	ids := &ids{run: run, random: true}
	d, err := s.openSender(ids)
	if err != nil {
		return Played{}, err
	}
	defer d.close()
	if d.caller, err = s.caller(ctx); err != nil {
		return Played{}, err
	}
	if err := before(d); err != nil {
		return Played{}, err
	}
	moveTo, release, err := s.hold(ctx, file)
	if err != nil {
		return Played{}, err
	}
	defer store.SetIDs(ids.next)()
	ids.set(false)
	steps, err := d.playAll(ctx, file, run, func(n int) { ids.begin(n); moveTo(n) })
	err = errors.Join(err, release(context.WithoutCancel(ctx)))
	if err != nil {
		return Played{}, failed(ctx, err, len(steps))
	}
	ids.set(true)
	return Played{Run: run, Steps: steps, Now: s.DB.Now()}, after(d)
}

// caller returns the user for steps that name none: that of the request, or for a command the first administrator.
func (s *Service) caller(ctx context.Context) (string, error) {
	if id := access.From(ctx).UserID; id != store.NilID && id != "" {
		return id, nil
	}
	return s.find(ctx, access.Administrator)
}

const (
	// firstStep is how long after the start of a file its first step runs. The jobs that are due then take less.
	firstStep = time.Minute
	// betweenSteps is the time between two steps.
	betweenSteps = time.Second
)

// hold stops the clock for a file with a start. moveTo sets it to the time of a step, and release lets it go on from where it stands.
// Without a start both do nothing.
func (s *Service) hold(ctx context.Context, file *File) (moveTo func(step int), release func(ctx context.Context) error, err error) {
	if file.Start == nil {
		return func(int) {}, func(context.Context) error { return nil }, nil
	}
	from := file.Start.Add(firstStep)
	if present := s.Clock.Now(); present.After(from) {
		from = present
	}
	moveTo = func(step int) { s.Clock.Hold(from.Add(time.Duration(step) * betweenSteps)) }
	release = func(ctx context.Context) error {
		s.Clock.Release()
		return s.DB.KeepAhead(ctx, s.Clock.Offset())
	}
	// A process that ends meanwhile starts with the time of the last step: time does not run back.
	last := from.Add(time.Duration(len(file.Steps)) * betweenSteps)
	return moveTo, release, s.DB.KeepAhead(ctx, s.Clock.Offset()+last.Sub(s.Clock.Now()))
}

// Wrong turns a mistake of a file into an error of the API.
func Wrong(err error) error {
	p, ok := errors.AsType[*Problem](err)
	if !ok {
		return err
	}
	args := apierr.Args{"Line": p.Line, "Step": p.Step}
	maps.Copy(args, p.Args)
	field := "file"
	if member, ok := p.Args["Member"].(string); ok && p.Step != "" {
		field = p.Step + "." + member
	} else if ok {
		field = member
	}
	var problems apierr.Fields
	problems.Add(field, p.Key, args)
	return (&apierr.Error{Kind: apierr.InvalidInput, Fields: &problems}).Detail("line", p.Line).Detail("step", p.Step)
}

// failed turns the failure of a step into an error of the API. done is how many steps were played before it.
func failed(ctx context.Context, err error, done int) error {
	f, ok := errors.AsType[*Failure](err)
	if !ok {
		return err
	}
	if ctx.Err() != nil {
		f.Reason = failAnswer
	}
	e := apierr.StepFailed.Because(f.Reason)
	e.Args = apierr.Args{"Step": f.Step.ID, "Line": f.Step.Line, "Status": f.Status, "Message": f.Message, "Member": f.Member}
	e.Cause = f.Cause
	e = e.Detail("step", f.Step.ID).Detail("line", f.Step.Line).Detail("request", f.Step.Request()).Detail("done", done)
	for name, value := range map[string]string{"code": f.Code, "message": f.Message, "member": f.Member} {
		if value != "" {
			e = e.Detail(name, value)
		}
	}
	if f.Status != 0 {
		e = e.Detail("status", f.Status)
	}
	if len(f.Fields) > 0 {
		e = e.Detail("answer_details", f.Fields)
	}
	return e
}
