package httpapi

import (
	"context"
	"net/http"

	"puntuale"
	"puntuale/internal/control"
)

func registerSandbox(a *api) {
	client(a, operation{id: "listSandboxMessages", method: http.MethodGet, path: "/api/sandbox/messages", strict: true,
		summary: "List what the simulated network received, oldest first"}, listSandbox)
}

type sandboxMessage struct {
	ID        int64    `json:"message_id"`
	Phone     string   `json:"phone"`
	Text      string   `json:"text"`
	MediaURL  *string  `json:"media_url"`
	MediaName *string  `json:"media_name"`
	Latitude  *float64 `json:"latitude"`
	Longitude *float64 `json:"longitude"`
	Received  string   `json:"received_at" format:"date-time"`
	Removed   bool     `json:"contents_removed,omitempty" doc:"true once what it showed was removed; with the person's data, its phone, too"`
}

type sandboxAnswer struct {
	Messages []sandboxMessage `json:"messages"`
	Next     *string          `json:"next_cursor"`
}

func listSandbox(ctx context.Context, c *control.Client, in *call, p *ListInput) (sandboxAnswer, error) {
	rows, next, err := c.SandboxMessages(ctx, p.page(in))
	if err != nil {
		return sandboxAnswer{}, err
	}
	return sandboxAnswer{each(rows, sandboxOf), textOrNull(next)}, nil
}

func sandboxOf(m puntuale.SandboxMessage) sandboxMessage {
	return sandboxMessage{
		ID: int64(m.Message), Phone: m.Phone, Text: m.Content.Text, MediaURL: textOrNull(m.Content.MediaURL),
		MediaName: textOrNull(control.MediaName(m.Content)), Latitude: m.Content.Latitude, Longitude: m.Content.Longitude,
		Received: stamp(m.Received), Removed: m.Blanked,
	}
}
