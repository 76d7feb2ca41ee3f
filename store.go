package puntuale

import (
	"cmp"
	"context"
	"encoding/json"
	"time"
)

// This file defines the store's interfaces. The comments of the methods of [Tenant], [PartnerTenant] and [Queue] are on
// the code, in internal/store.
//
// Unless a comment says otherwise, the following is true. A method that changes something returns nil only after its
// changes are on disk. If the method returns an error, nothing has changed. CodeUnavailable means that the database
// could not be reached. Many goroutines may call all methods at the same time.

// Tenant is all that a client's key can reach. Everything in it belongs to this client. Data of another client count
// as missing: CodeNotFound.
type Tenant interface {
	IdempotencyStore
	WebhookStore
	DeliveryStore

	// Runs.
	Start(ctx context.Context, s StartRun) (StartedRun, error)
	AddBytes(ctx context.Context, day Date, n, most int64) (bool, error)
	LastStarted(ctx context.Context, limit int) ([]SequenceID, error)
	Stop(ctx context.Context, sequence SequenceID, names []string, reference string, day Date, now time.Time) (StopResult, error)
	CancelPending(ctx context.Context, target CancelTarget, day Date, now time.Time, took func([]CancelledMessage) error) error

	// Bookings.
	PutBooking(ctx context.Context, r PutBooking) (PutBookingResult, error)
	BookingState(ctx context.Context, reference, phone string) (BookingState, error)
	// MovedBookingState is like BookingState, with Follow and former as in [PutBooking].
	MovedBookingState(ctx context.Context, reference, former, phone string) (BookingState, error)
	BookingHistory(ctx context.Context, id BookingID) ([]BookingEntry, error)
	Bookings(ctx context.Context, f BookingFilter, p Page) ([]Booking, string, error)
	CountBookings(ctx context.Context, from, to time.Time) (BookingCounts, error)
	NextMessages(ctx context.Context, bookings []BookingID) (map[BookingID]MessageID, error)
	// NamedBookings returns the bookings that have these references, by reference. A reference without a booking is missing.
	NamedBookings(ctx context.Context, references []string) (map[string]MadeBooking, error)
	// ErasedBookings reports which of these keyed hashes are of the reference of an erased booking.
	ErasedBookings(ctx context.Context, marks []string) (map[string]bool, error)
	// KeepAsOf stores how new these bookings are. A booking that has changed since it was read keeps its own.
	KeepAsOf(ctx context.Context, all []Booking, as AsOf) error
	Usage(ctx context.Context, day Date) (Usage, error)
	// Replans. StartReplan sets Last. Codes: not_found (the sequence); conflict, if one is running or paused.
	StartReplan(ctx context.Context, r Replan) error
	Replan(ctx context.Context, sequence SequenceID) (r Replan, found bool, err error)
	// MoveReplan changes the state if it is one of from. Codes: not_found (the sequence), conflict.
	MoveReplan(ctx context.Context, sequence SequenceID, to ReplanState, now time.Time, from ...ReplanState) error
	// ReplanBookings returns a part of the bookings in the order of ids, and the last id that it read; 0: there are no more.
	// The bookings have only their id and reference.
	ReplanBookings(ctx context.Context, r ReplanFilter, limit int) (some []Booking, last BookingID, err error)
	CountReplan(ctx context.Context, r ReplanFilter) (int, error)
	SpendCall(ctx context.Context, day Date) (Usage, error) // counts one call; codes: cap_reached

	// Calendars. Methods with an id may return not_found.
	CreateCalendar(ctx context.Context, c Calendar, o *Idempotency) (CalendarID, error)
	UpdateCalendar(ctx context.Context, id CalendarID, p CalendarPatch, now time.Time) (Calendar, error)
	DeleteCalendar(ctx context.Context, id CalendarID) error
	Calendars(ctx context.Context) ([]Calendar, error)
	Calendar(ctx context.Context, id CalendarID) (Calendar, error)
	CalendarEntries(ctx context.Context, id CalendarID, problems bool, p Page) ([]CalendarEntry, string, error)
	ReadCalendarNow(ctx context.Context, id CalendarID, now time.Time) (time.Time, error)
	StartCalendar(ctx context.Context, id CalendarID, now time.Time) (Calendar, error)
	CancelGone(ctx context.Context, id CalendarID, n int, now time.Time) (Calendar, error)

	// Messages.
	Details(ctx context.Context, ids []MessageID) ([]MessageDetail, error)
	Outlines(ctx context.Context, ids []MessageID) ([]MessageDetail, error)
	Messages(ctx context.Context, f MessageFilter, p Page) ([]MessageDetail, string, error)
	Outcomes(ctx context.Context, from, to time.Time, p Page) ([]MessageOutcome, string, error)
	Resend(ctx context.Context, r Resend) (ResendResult, error)
	CancelMessages(ctx context.Context, ids []MessageID, day Date, now time.Time) ([]CancelledMessage, error)

	// Reports. ResultMessages lists the messages behind a count; codes: invalid (the cursor).
	Results(ctx context.Context, f ResultFilter, now time.Time) (ResultReport, error)
	ResultMessages(ctx context.Context, f ResultMessages, p Page) ([]ResultMessage, string, error)

	// The agenda: messages that left, and messages that are to leave.
	Ended(ctx context.Context, from, to time.Time, failedOf, limit int) ([]MessageDetail, error)
	Upcoming(ctx context.Context, from, to time.Time, limit int) ([]MessageDetail, error)
	UpcomingCounts(ctx context.Context, from, to time.Time) ([]QuarterCount, error)
	CountMessages(ctx context.Context, f MessageFilter, maximum int) (n int, all bool, err error)
	Version(ctx context.Context) (string, error)

	// The history of one message.
	MessageEvents(ctx context.Context, id MessageID) ([]MessageEvent, error)
	ResentAs(ctx context.Context, run RunID, id MessageID) ([]MessageID, error)

	// Facts about pending messages that the messages' state does not show.
	Uncertain(ctx context.Context, after time.Time) (found []UncertainAttempt, all bool, err error)
	AmongBlacklisted(ctx context.Context, phones []string, mark func(name string) string) (map[string]bool, error)

	// Sequences.
	CreateSequence(ctx context.Context, s Sequence, o *Idempotency) (SequenceID, error)
	UpdateSequence(ctx context.Context, s Sequence, known ...Version) error
	Sequence(ctx context.Context, id SequenceID) (Sequence, error)
	Sequences(ctx context.Context, f SequenceFilter, p Page) ([]Sequence, string, error)
	CountSequences(ctx context.Context, text string, limit int) (n int, all bool, err error)
	StartInfo(ctx context.Context, id SequenceID) (Sequence, Session, error)
	DeleteSequence(ctx context.Context, id SequenceID, keep, cancel bool, now time.Time) error
	RestoreSequence(ctx context.Context, id SequenceID, since time.Time) error

	// Sessions.
	CreateSession(ctx context.Context, s Session, o *Idempotency) (SessionID, error)
	Session(ctx context.Context, id SessionID) (Session, error)
	DefaultSession(ctx context.Context) (Session, error)
	Sessions(ctx context.Context, p Page) ([]Session, string, error)
	DeleteSession(ctx context.Context, id SessionID, cancel bool, moveTo SessionID, now time.Time) error
	GiveUp(ctx context.Context, id SessionID, now time.Time) error
	UpdateSession(ctx context.Context, id SessionID, p SessionPatch, known ...Version) error
	SetDefaultPair(ctx context.Context, id SessionID, start, stop SequenceID, known ...Version) error

	// FindNamed returns the newest sequences, campaigns and templates whose names contain all words of a text, or that have
	// the text as their id, at most limit of each.
	FindNamed(ctx context.Context, text string, limit int) (map[NamedKind][]NamedItem, error)

	// Templates.
	CreateTemplate(ctx context.Context, t Template, o *Idempotency) (TemplateID, error)
	UpdateTemplate(ctx context.Context, t Template, known ...Version) error
	Template(ctx context.Context, id TemplateID) (Template, error)
	Templates(ctx context.Context, p Page) ([]Template, string, error)
	TemplatesNamed(ctx context.Context, names []string) (map[string]Template, error)
	DeleteTemplate(ctx context.Context, id TemplateID) error

	// Uploaded files. Methods with an id may return not_found. CreateFile begins a file, whose parts AddFilePart adds in any
	// order; FinishFile makes it usable. A file that is not finished within an hour is removed. If the client has a file with
	// the same bytes, CreateFile and FinishFile return that one, with the new name. Codes of CreateFile: quota_reached.
	CreateFile(ctx context.Context, f File) (File, error)
	AddFilePart(ctx context.Context, id FileID, n int, content []byte) error
	FinishFile(ctx context.Context, f File) (File, error)
	DropFile(ctx context.Context, id FileID) error
	File(ctx context.Context, id FileID) (File, error)
	FilePart(ctx context.Context, id FileID, n int) ([]byte, error)
	SmallPicture(ctx context.Context, id FileID) ([]byte, error) // not_found also if the file has none
	Files(ctx context.Context) ([]File, error)                   // all, the newest first
	FileUsers(ctx context.Context) (map[FileID][]FileUser, error)
	// DeleteFile deletes a file that nothing needs. Codes: conflict (something of the client names it, or a message with it
	// is still to leave).
	DeleteFile(ctx context.Context, id FileID, now time.Time) error

	// The blacklist. Only its first three methods count a call.
	AddBlacklisted(ctx context.Context, e BlacklistEntry, day Date, o *Idempotency) error
	RemoveBlacklisted(ctx context.Context, p Person, day Date, now time.Time) (bool, error)
	Blacklist(ctx context.Context, p Page) ([]BlacklistEntry, string, error)
	FindBlacklisted(ctx context.Context, f BlacklistFilter, p Page) ([]BlacklistEntry, string, error)
	CountBlacklisted(ctx context.Context, f BlacklistFilter, limit int) (n int, all bool, err error)
	BlacklistEntry(ctx context.Context, id int64) (BlacklistEntry, error)
	AddAllBlacklisted(ctx context.Context, all []BlacklistEntry) (added int, err error)
	RemoveBlacklistEntry(ctx context.Context, id int64, now time.Time) error

	// The messages that the simulated network received from the client.
	SandboxMessages(ctx context.Context, p Page) ([]SandboxMessage, string, error)
	SandboxChat(ctx context.Context, session SessionID, phone string, limit int) ([]SandboxMessage, error)

	// Commands to the nodes that own the client's sessions.
	GiveCommand(ctx context.Context, c Command) (CommandID, error)
	CommandAnswer(ctx context.Context, id CommandID, now time.Time) ([]byte, error)

	// Erasure.
	Erase(ctx context.Context, e Erasure) (ErasureResult, error)
	// PersonalData reads what Erase would remove, except consent, messages and replies, which have lists of their own. It
	// calls each with pages of rows. A row is a JSON object. Each member has at least one page, and its pages follow each
	// other.
	PersonalData(ctx context.Context, of Person, each func(member string, rows []json.RawMessage) error) error

	// What people must decide after a restore.
	Restored(ctx context.Context) (RestoreResult, error)
	UnknownMessages(ctx context.Context, p Page) ([]MessageDetail, string, error)
	CloseUnknown(ctx context.Context, ids []MessageID, day Date, now time.Time) ([]MessageID, error)
	Release(ctx context.Context, day Date) error

	// Official sessions and gateway sessions. A tenant cannot read their keys.
	CreateOfficial(ctx context.Context, s Session, seal func(SessionID) []byte, o *Idempotency) (SessionID, error)
	SetKeys(ctx context.Context, id SessionID, sealed []byte) error
	ChangeKeys(ctx context.Context, id SessionID, change KeyChange) error
	ReplyWindowOf(ctx context.Context, session SessionID, phone string) (time.Time, error)
	CreateGateway(ctx context.Context, s Session, mark string, seal func(SessionID) []byte, o *Idempotency) (SessionID, error)

	// Devices of the client's sessions, and pages that link a number.
	OfferLinkingPage(ctx context.Context, session SessionID, mark string, until time.Time) (begun bool, err error)
	OfferDevice(ctx context.Context, session SessionID, sealed []byte, mark string, expiresAt time.Time) error
	Devices(ctx context.Context, session SessionID) ([]Device, error)
	UnlinkDevices(ctx context.Context, session SessionID, device DeviceID, now time.Time) error

	// What one device does.
	Takeable(ctx context.Context, session SessionID, device DeviceID, now time.Time, limit int) ([]HeldMessage, error)
	HeldBy(ctx context.Context, session SessionID, device DeviceID) ([]HeldMessage, error)
	Take(ctx context.Context, take DeviceTake) ([]HeldMessage, error)
	Renew(ctx context.Context, session SessionID, device DeviceID, held []HeldRef, holdUntil, now time.Time) ([]HeldRef, error)
	Report(ctx context.Context, session SessionID, device DeviceID, reports []DeviceReport, now time.Time) ([]ReportResult, error)
	SeenDevice(ctx context.Context, device DeviceID, now time.Time) error
	KeepPush(ctx context.Context, device DeviceID, sealed []byte) error

	// OfficialWays returns the settings of a session, and what Meta's answers say about the ways of its messages. Codes:
	// not_found.
	OfficialWays(ctx context.Context, session SessionID, now time.Time) (OfficialWays, error)

	// Templates of the network.
	HealthOf(ctx context.Context, session SessionID, now time.Time) (SessionHealth, error)
	NetworkTemplates(ctx context.Context, session SessionID, p Page) (NetworkTemplates, []NetworkTemplate, string, error)
	NetworkTemplatesNamed(ctx context.Context, session SessionID, names []string) ([]NetworkTemplate, error)
	NetworkTemplateWithID(ctx context.Context, session SessionID, id string) (NetworkTemplate, error)
	AcceptCategory(ctx context.Context, session SessionID, id string) error
	// RequestTemplate stores a request. The function decide returns an error if what the client did before forbids it.
	RequestTemplate(ctx context.Context, r TemplateRequest, decide func(TemplateUsage) error) (TemplateRequestID, error)
	TemplateRequest(ctx context.Context, id TemplateRequestID) (TemplateRequest, error)
	// TemplateRequests returns the latest requests of the session's business, the newest first.
	TemplateRequests(ctx context.Context, session SessionID, limit int) ([]TemplateRequest, error)

	// Campaigns. Every method may return not_found, besides the codes that it names.
	CreateCampaign(ctx context.Context, c Campaign, day Date, o *Idempotency) (CampaignID, error)
	UpdateCampaign(ctx context.Context, c Campaign) error
	Campaign(ctx context.Context, id CampaignID) (Campaign, error)
	Campaigns(ctx context.Context, p Page) ([]Campaign, string, error)
	CountCampaigns(ctx context.Context, limit int) (n int, all bool, err error)
	CampaignCounts(ctx context.Context, id CampaignID, receipts bool) (CampaignCounts, error)
	ChangeCampaign(ctx context.Context, id CampaignID, c CampaignChange) error
	StartCampaign(ctx context.Context, id CampaignID, s CampaignStart) (Usage, error)

	// The recipients of campaigns, in lists. Codes: not_found.
	NewList(ctx context.Context, l RecipientList, now time.Time) (ListID, error)
	AddRecipients(ctx context.Context, l RecipientList, rows []Recipient, now time.Time) error
	UseList(ctx context.Context, was Campaign, list ListID) error
	RecipientList(ctx context.Context, list ListID) (RecipientList, error)
	Recipients(ctx context.Context, list ListID, f RecipientFilter, after int64, limit int) ([]Recipient, error)

	// The check of a campaign, and the retry of failed messages.
	ChangeCheck(ctx context.Context, id CampaignID, c CheckProgress) error
	FailedOfCampaign(ctx context.Context, id CampaignID, uncertain bool, after MessageID, limit int) ([]MessageID, error)
	Running(ctx context.Context, sequence SequenceID, phones []string) (map[string]bool, error)

	// A campaign's cost and duration. Codes: not_found.
	KnownPersons(ctx context.Context, session SessionID, phones []string) (map[string]KnownPerson, error)
	Charges(ctx context.Context, id CampaignID) ([]ChargeCount, error)
	SessionLoad(ctx context.Context, session SessionID, since time.Time) (SessionUsage, error)
	Portfolio(ctx context.Context, session SessionID, now time.Time) (Portfolio, error)

	// Contacts.
	MergeContacts(ctx context.Context, m ContactBatch) (MergedContacts, error)
	UpdateContact(ctx context.Context, id ContactID, p ContactPatch, day Date, now time.Time) (Contact, error)
	DeleteContact(ctx context.Context, id ContactID, day Date) error
	TagContacts(ctx context.Context, ids []ContactID, add, remove []string, now time.Time) (int, error)
	// NumberChanges returns the changes to and from the names of a person, newest first, at most 20.
	NumberChanges(ctx context.Context, phone string) ([]NotedChange, error)
	// UndoChange undoes the latest change of the person who has the phone, and counts one call; the cap never refuses it.
	// What moved goes back. What came from the new number since stays with it. Codes: not_found (there is no change, or it
	// was undone); conflict (it is too old).
	UndoChange(ctx context.Context, phone string, day Date, now time.Time) (NotedChange, error)
	CountCall(ctx context.Context, day Date) error
	Contacts(ctx context.Context, f ContactFilter, p Page) ([]Contact, string, error)
	Contact(ctx context.Context, id ContactID) (Contact, error)
	ContactOf(ctx context.Context, phone string) (c Contact, found bool, err error)
	FindContacts(ctx context.Context, text string, limit int) (found []Contact, more bool, err error)
	ContactsOf(ctx context.Context, phones []string) (map[string]Contact, error)
	NamesOf(ctx context.Context, phones []string) (map[string]string, error)
	CountContacts(ctx context.Context, f ContactFilter, limit int) (n int, all bool, err error)
	ContactTags(ctx context.Context) (map[string]int, error)

	// Replies. All lists are newest first.
	Replies(ctx context.Context, f ReplyFilter, p Page) ([]Reply, string, error)
	Reply(ctx context.Context, id ReplyID) (Reply, error)
	Conversations(ctx context.Context, unread bool, p Page) ([]Conversation, string, error)
	CountConversations(ctx context.Context, unread bool, limit int) (n int, all bool, err error)
	Conversation(ctx context.Context, phone string) (Conversation, error)
	Unread(ctx context.Context, limit int) (int, error)
	MarkRead(ctx context.Context, phone string, last ReplyID, now time.Time) (int, error)
	Answered(ctx context.Context, phone string, at time.Time) error

	// The ledger of consent.
	AddConsent(ctx context.Context, e ConsentEntry, day Date, o *Idempotency) (Consent, error)
	AddConsents(ctx context.Context, all []ConsentEntry) error
	Consents(ctx context.Context, of Person, p Page) ([]Consent, string, error)
	CancelMarketing(ctx context.Context, phone string, now time.Time) (int, error)
	MarketingRefused(ctx context.Context, phones []string, mark func(name string) string) (map[string]bool, error)
	ConsentStatuses(ctx context.Context, of Person) (map[Purpose]ConsentStatus, error)

	// Statements. Calls counts the calls of some days, the last one inclusive. ClaimStatement marks the month until a moment,
	// so that no other node counts it meanwhile. FreezeStatement stores the statement if the mark is still there.
	// KeepStatementParts stores as what messages were counted, in a count that has this Statement.CountedTo and stored n parts
	// before. StatementLines finds these lines; it omits messages that were not counted.
	BilledMessages(ctx context.Context, p BilledPeriod) ([]BilledMessage, error)
	Calls(ctx context.Context, from, to Date) (int64, error)
	Statement(ctx context.Context, month Month) (s Statement, found bool, err error)
	ClaimStatement(ctx context.Context, month Month, now, until time.Time) (bool, error)
	FreezeStatement(ctx context.Context, s Statement, until time.Time) (bool, error)
	KeepStatementParts(ctx context.Context, month Month, countedTo time.Time, n int, parts []StatementPart) error
	StatementLines(ctx context.Context, month Month, countedTo time.Time, ids []MessageID) (map[MessageID]StatementLine, error)

	// The client's settings.
	Settings(ctx context.Context) (ClientSettings, error)
	UpdateSettings(ctx context.Context, p SettingsPatch, known ...Version) (ClientSettings, error)

	// The feed of events.
	Events(ctx context.Context, after int64, types EventSet, limit int, now time.Time) (all []Event, next int64, err error)
	LastEvent(ctx context.Context) (int64, error)

	// Rules. Every method may return not_found.
	CreateAutomation(ctx context.Context, a Automation, secret *HookSecret, o *Idempotency) (AutomationID, error)
	UpdateAutomation(ctx context.Context, a Automation, known ...Version) error
	Automation(ctx context.Context, id AutomationID) (Automation, error)
	Automations(ctx context.Context) ([]Automation, error)
	DeleteAutomation(ctx context.Context, id AutomationID) error
	Firings(ctx context.Context, id AutomationID, p Page) ([]Firing, string, error)
	AutomationFacts(ctx context.Context, phone string, wanted WantedFacts, now time.Time) (AutomationFacts, error)

	// Hooks. Codes: not_found (there is no such rule, or its trigger is not a hook).
	Hook(ctx context.Context, id AutomationID) (Hook, error)
	SetHookSecret(ctx context.Context, id AutomationID, s HookSecret) error

	// Links to Chatwoot. A session has at most one link.
	LinkChatwoot(ctx context.Context, l ChatwootLink, token []byte, now time.Time) (ChatwootLink, error)
	FinishChatwoot(ctx context.Context, id WebhookID, inbox int64) (ChatwootLink, error)
	ChatwootLink(ctx context.Context, session SessionID) (ChatwootLink, error)
	UnlinkChatwoot(ctx context.Context, session SessionID) error
}

// Page asks for a part of a list: at most Limit rows after the position Cursor. Cursor "" is the beginning. Methods
// return the cursor of the next page, or "" after the last page. New rows do not disturb a reader that goes through
// the pages.
type Page struct {
	Limit  int
	Cursor string
}

// PartnerTenant is all that a partner's key can reach. Deleted clients, and those of other partners, are missing: CodeNotFound.
type PartnerTenant interface {
	IdempotencyStore
	WebhookStore
	DeliveryStore

	// Clients.
	CreateClient(ctx context.Context, c NewClient, o *Idempotency) (CreatedIDs, error)
	Client(ctx context.Context, id ClientID) (Client, error)
	ClientOfSession(ctx context.Context, id SessionID) (ClientID, error)
	Clients(ctx context.Context, p Page) ([]Client, string, error)
	ClientsByID(ctx context.Context, ids []ClientID) (map[ClientID]Client, error)
	UpdateClient(ctx context.Context, id ClientID, c ClientPatch, now time.Time) (Client, error)
	Quotas(ctx context.Context, ids []ClientID) (map[ClientID]Quotas, error)
	DeleteClient(ctx context.Context, id ClientID, now time.Time) error
	Plans(ctx context.Context) ([]ClientPlan, error)
	CreatePlan(ctx context.Context, p ClientPlan, o *Idempotency) (PlanID, error)
	UpdatePlan(ctx context.Context, p ClientPlan, known ...Version) error
	DeletePlan(ctx context.Context, id PlanID) error

	// Keys of the partner (client 0) and of its clients. not_found: the key is unknown, revoked, or expired after a rotation.
	// A method that makes a key may also return quota_reached (for a client), or conflict (the partner has MaxPartnerKeys).
	Keys(ctx context.Context, client ClientID, now time.Time) ([]Key, error)
	CreateKey(ctx context.Context, client ClientID, k Key, o *Idempotency) (KeyID, error)
	RotateClientKey(ctx context.Context, client ClientID, old KeyID, next Key, graceEnds, now time.Time, o *Idempotency) (KeyID, error)
	RevokeKey(ctx context.Context, client ClientID, id KeyID, now time.Time) error

	// Users of the partner (client 0) and of its clients. A user or client of others, or a deleted client: not_found.
	Users(ctx context.Context, client ClientID) ([]User, error)
	User(ctx context.Context, client ClientID, id UserID) (User, error)
	CreateUser(ctx context.Context, u User, i *Invitation) (UserID, error)
	Invite(ctx context.Context, client ClientID, id UserID, i Invitation) error
	Uninvite(ctx context.Context, client ClientID, id UserID) error
	UpdateUser(ctx context.Context, client ClientID, id UserID, p UserPatch, allow func(User) error) (User, error)
	DeleteUser(ctx context.Context, client ClientID, id UserID) error

	AddAudit(ctx context.Context, e AuditEntry) error
	Audit(ctx context.Context, client ClientID, p Page) ([]AuditEntry, string, error)
	CountAudit(ctx context.Context, client ClientID, limit int) (n int, all bool, err error)

	Host(ctx context.Context) (Host, error)
	Logo(ctx context.Context) (logo []byte, kind string, err error)
	SetBrand(ctx context.Context, b Brand, known ...Version) error
	ConfirmHost(ctx context.Context, name string) error
	WithdrawHost(ctx context.Context) error

	// The status of the clients, without the contents of messages.
	FindClients(ctx context.Context, f ClientFilter, p Page) ([]Client, string, error)
	CountClients(ctx context.Context, f ClientFilter, limit int) (n int, all bool, err error)
	Pulses(ctx context.Context, days []ClientDay) (map[ClientID]ClientStatus, error)
	ClientNames(ctx context.Context, ids []ClientID) (map[ClientID]string, error)
	Expiring(ctx context.Context, from, to Date, limit int) ([]Client, error)
	Totals(ctx context.Context, client ClientID, from, to Date, now time.Time) ([]DayTotal, error)
	Results(ctx context.Context, f ResultFilter, now time.Time) (ResultReport, error)

	OwnPrices(ctx context.Context) (Prices, error)                                // what the partner asks for messages
	Budgets(ctx context.Context, clients []ClientID) (map[ClientID]Budget, error) // amounts and currencies; clients without a budget are missing
	SetOwnPrices(ctx context.Context, p Prices) error
	FirstMonth(ctx context.Context) (Month, error)                                                // of the first client, deleted ones too, in its zone; 0: there was none
	DeletedClients(ctx context.Context, month Month, after ClientID, limit int) ([]Client, error) // in or after the month, or with its closed statement; id, name, zone, creation
}

// Operator is the part of the store that serves all tenants. The command line and authentication use it. A caller
// declares only the interfaces that it needs.
type Operator interface {
	TenantStore
	DeviceLogin
	PartnerStore
	MaintenanceStore
	HookStore
}

// TenantStore finds the owner of a key. It also gives the handles with which callers reach the data of one tenant.
type TenantStore interface {
	// Principal finds the owner of a key. Codes: unauthorized if the key is unknown, revoked or expired.
	Principal(ctx context.Context, hash KeyHash, now time.Time) (Principal, error)
	// UseKey stores that the key was used at the time now, unless a later use is stored.
	UseKey(ctx context.Context, id KeyID, now time.Time) error
	// ClientOf reads a client. Codes: not_found (also if the client was deleted).
	ClientOf(ctx context.Context, id ClientID) (Client, error)
	// BookingPage finds the booking whose page of the confirmation has this name. Codes: not_found.
	BookingPage(ctx context.Context, name string) (ClientID, string, error)
	Tenant(id ClientID) Tenant
	// Uncounted returns a Tenant for people in dashboards. Its calls are not counted, and the cap never refuses them.
	Uncounted(id ClientID) Tenant
	Partner(id PartnerID) PartnerTenant
}

// PartnerStore creates partners, and refills the credits of all clients.
type PartnerStore interface {
	// CreatePartner creates the partner, its login and its key in one transaction.
	CreatePartner(ctx context.Context, p Partner, l Login, k Key) (PartnerID, error)
	// RotateKey stores the key next for the owner of the key with this hash. The old key works until graceEnds.
	RotateKey(ctx context.Context, hash KeyHash, next Key, graceEnds, now time.Time) error
	// Refill refills the clients whose RefillAt is not later than now. It raises their credits to RefillTo, and sets
	// RefillAt to the result of next (zero: no more refills). It returns how many clients it refilled. Any number of nodes
	// may call it at the same time. If one client cannot be refilled, the others still are; the error names the client.
	Refill(ctx context.Context, now time.Time, next func(Client) time.Time) (int, error)
}

// MaintenanceStore does the regular clean-up of the store.
type MaintenanceStore interface {
	// Maintain does a bounded amount of work in one call. Any number of nodes may call it at the same time. The next
	// call repeats work that failed. Maintain does the following.
	//
	// It ends the unfinished messages of deleted clients and sessions, and deletes the contacts of deleted clients. It
	// deletes idempotency records older than two days, counts of calls older than 400 days, and windows that are
	// closed. It removes the requests and contents of runs whose messages all ended before the time blank (zero: it
	// removes none).
	Maintain(ctx context.Context, now, blank time.Time) error
	// Remember adds the recipients of runs to the contacts of clients whose settings ask for it
	// ([ClientSettings].Remember). It also updates the fields of these contacts. It skips runs that are younger than
	// the duration settle. The pure function read makes a contact from a run, or returns false if the run gives none.
	// One call does a bounded amount of work. Any number of nodes may call it at the same time.
	Remember(ctx context.Context, settle time.Duration, now time.Time, read func(CalledRun) (Contact, bool)) error
	// UnclosedMonths returns clients whose statement of a month is neither frozen nor being counted, with larger ids than
	// after, at most limit. They existed before end, and were not deleted before begin.
	UnclosedMonths(ctx context.Context, month Month, begin, end, now time.Time, after ClientID, limit int) ([]UnclosedMonth, error)
	// Check writes something to the disk, and returns an error if the store does not answer.
	Check(ctx context.Context) error
}

// DueMessage is a message that is due now or soon.
type DueMessage struct {
	Client     ClientID
	ID         MessageID
	Session    SessionID
	Campaign   CampaignID // messages of campaigns wait behind all other messages of the session; 0: no campaign
	Run        RunID
	Step       int // index into the Steps of the run
	Phone      string
	Due        time.Time
	Next       time.Time
	ValidUntil time.Time
	Intent     int64 // > 0: an attempt began, and its outcome is not known
	IntentAt   time.Time
	Attempt    int
	Repeats    int
	Generation int
	Purpose    Purpose
}

// Before reports whether m comes before o, for two messages to one person.
func (m DueMessage) Before(o DueMessage) bool {
	return cmp.Or(m.Due.Compare(o.Due), cmp.Compare(m.Run, o.Run), cmp.Compare(m.Step, o.Step), cmp.Compare(m.ID, o.ID)) < 0
}

// Queue has all methods with which the dispatcher reads and changes messages in the store.
type Queue interface {
	// Which messages are due, and what the dispatcher needs to send them.
	Due(ctx context.Context, from []QueueCursor, horizon time.Time, limit int) ([]DueMessage, error)
	Expiring(ctx context.Context, session SessionID, end time.Time, limit int) ([]DueMessage, error)
	Retrying(ctx context.Context, sessions []SessionID, since, end time.Time, maximum int) (tried []DueMessage, crowded []SessionID, err error)
	Contents(ctx context.Context, steps []StepRef) (map[StepRef]StepContent, error)
	SendPermissions(ctx context.Context, clients []ClientID) (map[ClientID]SendPermission, error)

	// Attempts, and what became of messages.
	Claim(ctx context.Context, c Claim) ([]ClaimAnswer, error)
	Record(ctx context.Context, now time.Time, results []Result) ([]bool, error)
	Settle(ctx context.Context, node NodeID, now time.Time, s []Settlement) error
}

// QueueCursor is a position in one of a session's two queues: after the message with this Next and this ID. If both are
// zero, the position is the beginning of the queue.
type QueueCursor struct {
	Session  SessionID
	Campaign bool // true: the campaign queue, without campaigns that hold their messages back; false: all other messages
	Next     time.Time
	ID       MessageID
}

// Claim is a request to begin attempts.
type Claim struct {
	Node     NodeID
	Token    int64 // token of this batch; positive, and never used before
	Now      time.Time
	Messages []ClaimItem
}

// ClaimItem names one message as the dispatcher last read it. Intent 0 begins a first attempt or a retry. Intent > 0
// repeats an attempt whose answer was lost, under the same connector id. A repeat reserves no second credit, and adds
// one to Repeats.
type ClaimItem struct {
	MessageRef
	// Session is the message's session when the dispatcher read the message. If the message has another session now,
	// the answer is ClaimStale. 0: any session.
	Session  SessionID
	Campaign CampaignID // the message's campaign when the dispatcher read it
	Phone    string
	Mark     string // mark of the phone, which is needed if the client erased persons; "": none
	Intent   int64
	Purpose  Purpose
}

// ClaimAnswer is what Claim did with one message.
type ClaimAnswer int8

const (
	ClaimStale         ClaimAnswer = iota // the message was cancelled or claimed, or got a new time or session, after the dispatcher read it; or it expired
	ClaimGranted                          // the intent is on disk: the message may be sent
	ClaimBlacklisted                      // the message became BLACKLISTED
	ClaimHeld                             // the client may not send now (credits, expiry, suspension): the message did not change
	ClaimPaused                           // the message's campaign is not running: the message did not change
	ClaimNoConsent                        // the person did not agree to marketing: the message became FAILED
	ClaimNumberChanged                    // the person has another number now: the message became FAILED
	ClaimUnmarked                         // the client erased persons: claim again with the phone's mark; the message did not change
	ClaimBudget                           // the message is marketing, and the budget of the client's month is used up: the message did not change
)

// Fleet stores the nodes and their leases, and which node sends for which session.
type Fleet interface {
	// Join registers a new node with a lease, and returns its id.
	Join(ctx context.Context, lease time.Duration) (NodeID, error)
	// Beat prolongs the node's lease. [ErrFenced]: the lease is gone.
	Beat(ctx context.Context, node NodeID, lease time.Duration) error
	// Reap removes nodes whose lease ended, and frees the sessions and triggers of nodes that are gone. It returns how
	// many sessions it freed. If a node has an open claim, only a later call removes the node.
	Reap(ctx context.Context) (freed int, err error)
	// Roster returns the ids of the live nodes. It also returns the sessions that the node owns or that nobody owns.
	Roster(ctx context.Context, node NodeID) ([]NodeID, []Session, error)
	// Assign gives the sessions that the node owner still owns to the node newOwner. 0 means no node. Assign returns
	// the sessions that changed owner.
	Assign(ctx context.Context, owner, newOwner NodeID, sessions []SessionID) ([]SessionID, error)
	// Leave frees the node's sessions and removes the node.
	Leave(ctx context.Context, node NodeID) error
}

// Wakeup informs the dispatcher that a message of the session is due at the time due. If due is zero, the wakeup says
// that sessions changed. A wakeup may be lost, so every loop also polls.
type Wakeup func(session SessionID, due time.Time)

// SecretStore stores a few small secrets of the server. They are only as safe as the database.
type SecretStore interface {
	// Secret returns the value, or nil if there is none.
	Secret(ctx context.Context, name string) ([]byte, error)
	// SetSecret stores the argument value if the stored value equals the argument old; old is nil if no value is
	// stored. It returns whether it stored value.
	SetSecret(ctx context.Context, name string, old, value []byte) (bool, error)
}

// Idempotency makes sure that a call which creates or sends something has its effect only once. The transaction that
// stores the effect also stores the call's answer, under the tenant, the scope and the key. If a later call has the
// same key and hash, it gets the stored answer as a [*Replayed] and does nothing else. If the hash differs, the later
// call gets CodeConflict. If an equal call is still running, the later call waits for it.
type Idempotency struct {
	Scope string // method and path: "POST /api/sequences"
	Key   string // the caller's key, 1 to 255 bytes
	Hash  string // hash of the body, to distinguish a repeat from a different call with the same key

	// Answer makes the bytes to store. The argument result is the value that the method returns with a nil error. It is
	// nil if the method returns only an error. The store calls Answer inside the transaction, perhaps more than once,
	// so it must be quick and pure. The store does not change the bytes; they may be sealed.
	Answer func(result any) ([]byte, error)
}

// IdempotencyStore looks up stored answers. A caller that finds an answer need not check and prepare the repeated call.
type IdempotencyStore interface {
	// KeptAnswer returns the answer that is stored under the key, or nil if there is none. Codes: conflict (the earlier
	// call had another body).
	KeptAnswer(ctx context.Context, o Idempotency) ([]byte, error)
}
