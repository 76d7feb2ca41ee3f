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
	client(a, operation{id: "answerFromSandbox", method: http.MethodPost, path: "/api/sandbox/replies", body: sandboxReplyBody{},
		summary: "Answer from a phone of the simulated network, as a person would"}, withBody(answerFromSandbox))
}

// sandboxReplyBody documents the body of the call that sends a reply from a simulated phone.
type sandboxReplyBody struct {
	Session   string   `json:"id_sessione,omitempty" read:"id" doc:"The sandbox session that gets the answer; else the default one"`
	Phone     string   `json:"phone" read:"phone" doc:"Who answers. A number is taken too."`
	Text      string   `json:"text,omitempty" maxLength:"4096" doc:"What the person writes. Needed without a button and without shares"`
	Button    string   `json:"button,omitempty" maxLength:"4096" doc:"Label of a button that the person presses, or title or payload of a row that they choose, instead of writing"`
	Shares    string   `json:"shares,omitempty" enum:"location,phone" doc:"What the person shares because a message asked for it, instead of writing"`
	Latitude  *float64 `json:"latitude,omitempty" minimum:"-90" maximum:"90" doc:"Degrees, of the shared location; else an example"`
	Longitude *float64 `json:"longitude,omitempty" minimum:"-180" maximum:"180" doc:"Degrees, of the shared location"`
	Message   string   `json:"message_id,omitempty" read:"id" doc:"The message whose button is pressed, or which asked; else the latest one with such a button or question"`
	NetworkID string   `json:"network_id,omitempty" maxLength:"255" doc:"The network's id of the message; given twice it is the same message. An Idempotency-Key stands for it."`
}

type sandboxReplyAnswer struct {
	Phone     string `json:"phone"`
	Session   string `json:"id_sessione"`
	NetworkID string `json:"network_id"`
}

func answerFromSandbox(ctx context.Context, c *control.Client, in *call, p *OnceInput, body *sandboxReplyBody) (sandboxReplyAnswer, error) {
	r, err := c.AnswerFromSandbox(ctx, control.SandboxReply{
		Session: body.Session, Phone: body.Phone, Text: body.Text, Button: body.Button, Shares: body.Shares, Latitude: body.Latitude, Longitude: body.Longitude, Message: body.Message, NetworkID: body.NetworkID, Scope: in.scope, Key: p.Key, Faults: in.refused,
	})
	if err != nil {
		return sandboxReplyAnswer{}, err
	}
	return sandboxReplyAnswer{r.Phone, r.Session, r.NetworkID}, nil
}

type sandboxMessage struct {
	ID        int64                 `json:"message_id"`
	Phone     string                `json:"phone"`
	Text      string                `json:"text"`
	MediaURL  *string               `json:"media_url"`
	MediaName *string               `json:"media_name"`
	Latitude  *float64              `json:"latitude"`
	Longitude *float64              `json:"longitude"`
	Received  string                `json:"received_at" format:"date-time"`
	Buttons   []string              `json:"buttons,omitempty" doc:"Labels of the buttons under the message"`
	Interact  *puntuale.Interactive `json:"interactive,omitempty" doc:"The list, the link or the question under the message"`
	Removed   bool                  `json:"contents_removed,omitempty" doc:"true once what it showed was removed; with the person's data, its phone, too"`
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
		Received: stamp(m.Received), Removed: m.Blanked, Buttons: labelsOf(m.Content.Buttons()), Interact: m.Content.Interactive,
	}
}

func labelsOf(all []puntuale.StepButton) (labels []string) {
	for _, b := range all {
		labels = append(labels, b.Label)
	}
	return labels
}
