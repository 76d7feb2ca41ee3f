package campaign

import (
	"context"
	"time"

	"puntuale"
)

// FeedStore has the methods that feed campaigns. They work for all tenants.
type FeedStore interface {
	// FedCampaigns returns the campaigns that are running, resuming or being cancelled, if the node owns their
	// sessions.
	FedCampaigns(ctx context.Context, node puntuale.NodeID) ([]puntuale.FedCampaign, error)
	// CountAhead counts the session's recipients whose first message was not attempted yet, and is due at or before the
	// time in the argument end. It stops counting at CampaignAhead.
	CountAhead(ctx context.Context, session puntuale.SessionID, end time.Time) (int, error)
	// Feed starts the runs of a chunk in one transaction, under the node's lease. It stores nothing and returns false
	// if the campaign is not running, or if the campaign's cursor has moved since the chunk was read. It leaves out
	// recipients that changed since then. It also stores nothing if another chunk of the business was fed since c.Portfolio was
	// counted. [puntuale.ErrFenced]: the lease is gone.
	Feed(ctx context.Context, node puntuale.NodeID, c puntuale.FeedChunk) (bool, error)
	// SayWaits stores why a running campaign waits. "": it does not wait.
	SayWaits(ctx context.Context, node puntuale.NodeID, client puntuale.ClientID, id puntuale.CampaignID, reason string) error
	// Canary looks at the first step's message to each fed recipient, and counts these messages by state.
	Canary(ctx context.Context, client puntuale.ClientID, id puntuale.CampaignID) (puntuale.CampaignCounts, error)
	// MoveChunk delays messages and their deadlines by the time for which the campaign's pause held them. It delays only
	// the deadline of a message whose due time comes from a date field. It does the same for a message that a person sent
	// again during the pause. MoveChunk begins after the given cursor, changes the messages of a limited number of
	// recipients, and returns the next cursor. After the last recipient, it sets the campaign to running. The result done
	// is true after this, and also if the campaign is not in the resumption that began at the time resumed.
	MoveChunk(ctx context.Context, node puntuale.NodeID, client puntuale.ClientID, id puntuale.CampaignID, resumed time.Time, after int64, now time.Time) (next int64, done bool, err error)
	// CancelChunk cancels a limited number of messages. When no message is left, it makes the campaign cancelled. The
	// result done is true after this, and also if the campaign is not being cancelled any more.
	CancelChunk(ctx context.Context, node puntuale.NodeID, client puntuale.ClientID, id puntuale.CampaignID, now time.Time) (done bool, err error)
	// FinishCampaign ends a running campaign if every recipient was fed or refused, and every message has ended or is
	// uncertain.
	FinishCampaign(ctx context.Context, node puntuale.NodeID, client puntuale.ClientID, id puntuale.CampaignID, now time.Time) (done bool, err error)
}
