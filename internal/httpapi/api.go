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
	"puntuale/internal/control/webhook"
	"puntuale/internal/httpkit"
	"puntuale/internal/httpkit/admission"
)

// DocumentPath is where the OpenAPI document is served; it takes no key.
const DocumentPath = "/openapi.json"

// Config is what [New] needs; all but Observe, Rate, Admit and Refuse must be set.
type Config struct {
	Control     *control.Control
	Accounts    *account.Accounts
	Webhooks    *webhook.Webhooks
	Automations *automation.Automations
	Logger      *slog.Logger
	Now         func() time.Time                                   // for the access log and the rate
	Rate        float64                                            // calls a second under one key; 0: no limit
	Observe     func(route string, status int, took time.Duration) // called for every answer; nil: not called
	Admit       admission.Limits                                   // shared with the dashboards and the webhooks
	Refuse      *admission.RefusalPacer                            // keeps refusals from taking all of the server's time; nil: none
	Proxies     httpkit.Proxies                                    // nil: httpkit.DefaultProxies
	Scratch     string                                             // the folder of answers that are too long for memory, made when it is needed; "": the system's
}

// pacedKey is a key whose rate is limited.
type pacedKey struct {
	side puntuale.Side
	id   puntuale.KeyID
}

// api is the state that operations share while they are registered.
type api struct {
	huma.API
	control     *control.Control
	accounts    *account.Accounts
	webhooks    *webhook.Webhooks
	automations *automation.Automations
	logger      *slog.Logger
	pace        *admission.RateLimiter[pacedKey]
	admits      admission.Limits
	refusal     *admission.RefusalPacer
	callerKeys  callerKeys
	scratch     string
	now         func() time.Time

	strictBodies map[string]bool // schemas of bodies that take no undocumented member
}

func init() {
	// An array of ours is never null. The setting is huma's, and global.
	huma.DefaultArrayNullable = false
}

// New returns the handler of every path below /api and /device, of the OpenAPI documents and of their page. The handler has
// request ids, access log and recovery. New fails only when a file of the page is missing.
func New(cfg Config) (http.Handler, error) {
	mux := http.NewServeMux()
	a := &api{API: humago.New(mux, settings()), control: cfg.Control, accounts: cfg.Accounts, webhooks: cfg.Webhooks, automations: cfg.Automations, logger: cfg.Logger, pace: admission.NewRateLimiter[pacedKey](cfg.Rate, int(2*cfg.Rate), cfg.Now), admits: cfg.Admit, refusal: cfg.Refuse, scratch: cmp.Or(cfg.Scratch, os.TempDir()), strictBodies: map[string]bool{}, now: cfg.Now}
	registerStart(a)
	registerMessages(a)
	registerClients(a)
	registerSequences(a)
	registerSessions(a)
	registerBlacklist(a)
	registerSandbox(a)
	registerOutcomes(a)
	registerResend(a)
	registerSingle(a)
	registerTemplates(a)
	registerPairs(a)
	registerAccounts(a)
	registerKeys(a)
	registerContacts(a)
	registerConsent(a)
	registerReplies(a)
	registerSettings(a)
	registerWebhooks(a)
	registerEvents(a)
	registerContactList(a)
	registerRestore(a)
	registerDevices(a)
	registerCampaigns(a)
	registerAutomations(a)
	a.open()
	if err := a.serveDocuments(mux); err != nil {
		return nil, err
	}
	mux.HandleFunc("/", a.unmatched(mux))
	return httpkit.Wrap(a.edge(mux), httpkit.Config{Logger: cfg.Logger, Now: cfg.Now, Observe: cfg.Observe, Proxies: cfg.Proxies}), nil
}

// settings turns off two things that huma adds by itself: a "$schema" in every answer, and pages that load scripts from
// other servers.
func settings() huma.Config {
	config := huma.DefaultConfig(productName, "1.0.0")
	config.CreateHooks = nil
	config.OpenAPIPath, config.DocsPath, config.SchemasPath = "", "", ""
	config.Info.Description = "Schedules and sends messages, and manages the accounts of those who do."
	config.Components.SecuritySchemes = map[string]*huma.SecurityScheme{
		"bearer":  {Type: "http", Scheme: "bearer", Description: "The API key."},
		"api_key": {Type: "apiKey", In: "query", Name: "api_key", Description: "The API key; a header is preferred, for addresses end up in logs."},
	}
	return config
}

// open lets objects have more members than the document describes. Answers may get more in later versions, and bodies
// may have more today. Bodies of strict calls may not. It must run after everything is registered and before the first
// call.
func (a *api) open() {
	for _, name := range []string{"ErrorModel", "ErrorDetail"} { // huma's own form of errors, which no answer has
		delete(a.OpenAPI().Components.Schemas.Map(), name)
	}
	for name, schema := range a.OpenAPI().Components.Schemas.Map() {
		if closed, ok := schema.AdditionalProperties.(bool); ok && !closed && !a.strictBodies[name] {
			schema.AdditionalProperties = nil
		}
	}
}
