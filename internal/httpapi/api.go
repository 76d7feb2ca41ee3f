package httpapi

import (
	"cmp"
	"log/slog"
	"net/http"
	"os"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"puntuale"
	"puntuale/internal/control"
	"puntuale/internal/control/account"
	"puntuale/internal/control/automation"
	"puntuale/internal/control/calendar"
	"puntuale/internal/control/statement"
	"puntuale/internal/control/webhook"
	"puntuale/internal/httpapi/docs"
	"puntuale/internal/httpkit"
	"puntuale/internal/httpkit/admission"
)

// Config configures [New]. Observe, Rate, Admit, Refuse, Proxies and Scratch are optional; all other members must be
// set.
type Config struct {
	Control     *control.Control
	Accounts    *account.Accounts
	Webhooks    *webhook.Webhooks
	Automations *automation.Automations
	Calendars   *calendar.Calendars
	Statements  *statement.Statements
	Logger      *slog.Logger
	Now         func() time.Time                                   // the clock for the access log and for the limit Rate
	Rate        float64                                            // calls that one key may make in a second; 0: no limit
	Observe     func(route string, status int, took time.Duration) // called for every answer; nil: not called
	Admit       admission.Limits                                   // shared with the dashboards and the webhooks
	Refuse      *admission.RefusalPacer                            // delays refusals, because a flood of refusals could use all of the server's time; nil: no delay
	Proxies     httpkit.Proxies                                    // the trusted proxies; nil: httpkit.DefaultProxies
	Scratch     string                                             // the folder for answers that are too long for memory, created at its first use; "": the system's temporary folder
}

// pacedKey identifies a key, so that the server can limit how many calls the key makes in a second.
type pacedKey struct {
	side puntuale.Side
	id   puntuale.KeyID
}

// api contains the data that all operations of the API share.
type api struct {
	huma.API
	control     *control.Control
	accounts    *account.Accounts
	webhooks    *webhook.Webhooks
	automations *automation.Automations
	calendars   *calendar.Calendars
	statements  *statement.Statements
	logger      *slog.Logger
	pace        *admission.RateLimiter[pacedKey]
	admits      admission.Limits
	refusal     *admission.RefusalPacer
	callerKeys  callerKeys
	scratch     string
	now         func() time.Time

	strictBodies map[string]bool // the names of those schemas of bodies that allow only documented members
}

func init() {
	// Arrays in this API are never null. This variable is huma's, so it applies to the whole process.
	huma.DefaultArrayNullable = false
}

// New returns the handler of every path below /api and /device. The handler also serves the OpenAPI documents and the
// page that shows them. The handler assigns request ids, writes the access log and recovers from panics. New fails only
// if a file of the page is missing.
func New(cfg Config) (http.Handler, error) {
	mux := http.NewServeMux()
	a := &api{API: humago.New(mux, settings()), control: cfg.Control, accounts: cfg.Accounts, webhooks: cfg.Webhooks, automations: cfg.Automations, calendars: cfg.Calendars, statements: cfg.Statements, logger: cfg.Logger, pace: admission.NewRateLimiter[pacedKey](cfg.Rate, int(2*cfg.Rate), cfg.Now), admits: cfg.Admit, refusal: cfg.Refuse, scratch: cmp.Or(cfg.Scratch, os.TempDir()), strictBodies: map[string]bool{}, now: cfg.Now}
	for of, form := range jsonForms {
		a.OpenAPI().Components.Schemas.RegisterTypeAlias(of, form)
	}
	registerStart(a)
	registerMessages(a)
	registerClients(a)
	registerSequences(a)
	registerBookings(a)
	registerManyBookings(a)
	registerReplans(a)
	registerSessions(a)
	registerBlacklist(a)
	registerSandbox(a)
	registerOutcomes(a)
	registerResults(a)
	registerResend(a)
	registerSingle(a)
	registerTemplates(a)
	registerFiles(a)
	registerPairs(a)
	registerAccounts(a)
	registerKeys(a)
	registerContacts(a)
	registerConsent(a)
	registerReplies(a)
	registerSettings(a)
	registerWebhooks(a)
	registerChatwoot(a)
	registerEvents(a)
	registerContactList(a)
	registerRestore(a)
	registerDevices(a)
	registerCampaigns(a)
	registerAutomations(a)
	registerCalendars(a)
	registerSearch(a)
	registerStatements(a)
	registerBudgets(a)
	documentEvents(a.OpenAPI())
	a.open()
	if err := docs.Serve(mux, docs.Config{Document: a.OpenAPI(), Accounts: cfg.Accounts, Logger: cfg.Logger}); err != nil {
		return nil, err
	}
	mux.HandleFunc("/", a.unmatched(mux))
	return httpkit.Wrap(a.edge(mux), httpkit.Config{Logger: cfg.Logger, Now: cfg.Now, Observe: cfg.Observe, Proxies: cfg.Proxies}), nil
}

// settings turns off two things that huma adds by itself: a member "$schema" in every answer, and pages that load
// scripts from other servers.
func settings() huma.Config {
	config := huma.DefaultConfig(docs.ProductName, "1.0.0")
	config.CreateHooks = nil
	config.OpenAPIPath, config.DocsPath, config.SchemasPath = "", "", ""
	config.Info.Description = docs.Introduction
	config.Info.License = &huma.License{Name: "GPL-3.0-or-later", URL: "https://www.gnu.org/licenses/gpl-3.0.html"}
	config.Info.Contact = &huma.Contact{Name: "The operator of this server"}
	config.Servers = []*huma.Server{{URL: "/", Description: "This server"}}
	for _, s := range docs.Subjects {
		config.Tags = append(config.Tags, &huma.Tag{Name: s.Name, Description: s.Description})
	}
	config.Components.SecuritySchemes = map[string]*huma.SecurityScheme{
		"bearer": {Type: "http", Scheme: "bearer", Description: "The key: `Authorization: Bearer ck_…`"},
		"query":  {Type: "apiKey", In: "query", Name: "api_key", Description: "The key in the address, for programs that cannot set a header. Addresses end up in logs."},
	}
	return config
}

// open allows objects to have more members than the document describes. Later versions may add members to answers, and
// callers may send members that the server ignores. The schemas in strictBodies still allow only the documented
// members. Run open after all operations are registered, and before the first call.
func (a *api) open() {
	for _, name := range []string{"ErrorModel", "ErrorDetail"} { // these are huma's own forms of errors, which no answer uses
		delete(a.OpenAPI().Components.Schemas.Map(), name)
	}
	for name, schema := range a.OpenAPI().Components.Schemas.Map() {
		if closed, ok := schema.AdditionalProperties.(bool); ok && !closed && !a.strictBodies[name] {
			schema.AdditionalProperties = nil
		}
	}
}
