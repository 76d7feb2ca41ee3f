package store

import "puntuale"

// The compiler checks here that Store implements these role interfaces.
var (
	_ puntuale.Operator        = (*Store)(nil)
	_ puntuale.Queue           = (*Store)(nil)
	_ puntuale.Fleet           = (*Store)(nil)
	_ puntuale.LinkStore       = (*Store)(nil)
	_ puntuale.SandboxLedger   = (*Store)(nil)
	_ puntuale.SecretStore     = (*Store)(nil)
	_ puntuale.OfficialStore   = (*Store)(nil)
	_ puntuale.GatewayStore    = (*Store)(nil)
	_ puntuale.PushStore       = (*Store)(nil)
	_ puntuale.MailStore       = (*Store)(nil)
	_ puntuale.NoticeStore     = (*Store)(nil)
	_ puntuale.IntakeStore     = (*Store)(nil)
	_ puntuale.KnownPersons    = (*Store)(nil)
	_ puntuale.OutboxStore     = (*Store)(nil)
	_ puntuale.AutomationQueue = (*Store)(nil)
	_ puntuale.DateQueue       = (*Store)(nil)

	_ puntuale.NetworkTemplateStore = (*Store)(nil)
	_ puntuale.SignInStores         = (*Store)(nil)
)
