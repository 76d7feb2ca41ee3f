package httpapi

import (
	"context"
	"io"
	"mime"
	"net/http"
	"strconv"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"puntuale"
	"puntuale/internal/catalogue"
	"puntuale/internal/control"
)

func registerReplies(a *api) {
	client(a, operation{id: "listReplies", method: http.MethodGet, path: "/api/replies", strict: true,
		summary: "List what people wrote, newest first"}, listReplies)
	client(a, operation{id: "readReplies", method: http.MethodPost, path: "/api/replies/read", body: readBody{},
		summary: "Mark a person's replies as read"}, withBody(readReplies))
	file := operation{id: "getReplyMedia", method: http.MethodGet, path: "/api/replies/{id}/media", strict: true,
		summary: "Download the file that came with a reply, from its network", refusals: []int{http.StatusNotFound, http.StatusGone}}
	client(a, file, a.replyMediaOf)
	a.documented(file).Responses["200"].Content = map[string]*huma.MediaType{"application/octet-stream": {Schema: &huma.Schema{Type: "string"}}}
}

type repliesInput struct {
	ListInput
	Phone  string `query:"phone" doc:"The person"`
	Unread string `query:"unread" enum:"true,false" doc:"true: only those that nobody read"`
}

type replyMedia struct {
	Type  string  `json:"type" doc:"Media type, as the network says"`
	Name  string  `json:"name" doc:"File name; may be empty"`
	Size  int64   `json:"size" doc:"Bytes; 0: the network did not say"`
	Until *string `json:"until" format:"date-time" doc:"The network keeps the file until then; null: it did not say"`
}

type replyRecord struct {
	ID       string      `json:"id"`
	Phone    string      `json:"phone"`
	Text     string      `json:"text" doc:"At most 4096 characters; empty once it was removed"`
	Kind     string      `json:"kind" enum:"text,image,video,audio,document,sticker,location,contact,reaction,button,call,other"`
	Media    *replyMedia `json:"media,omitempty"`
	File     *string     `json:"file,omitempty" doc:"ID of the kept file, if the settings ask to keep files of replies; missing: it is not kept, or not yet"`
	Fault    *string     `json:"file_fault,omitempty" doc:"Why the file is not kept, for people; missing: it is kept, or nobody asked to keep it"`
	Waits    bool        `json:"file_waits,omitempty" doc:"true: the file is being fetched and checked"`
	Received string      `json:"received_at" format:"date-time" doc:"When it was written, by the network"`
	Session  string      `json:"id_sessione"`
	Run      *int64      `json:"run" doc:"First message of the run that the reply answers: of the message that it taps or quotes, else of the latest run that wrote to the person in the 30 days before; null: none"`
	Effect   *string     `json:"effect" doc:"What it did. stopped: it stopped messages; opt_out: it withdrew consent; opt_in: it took that back; answered: it answered a question about a booking; unclear: it answers such a question, but changed nothing, so people must look; null: nothing"`
	Payload  *string     `json:"payload" doc:"Of the pressed button, as the network tells it; null: none"`
	Button   *string     `json:"button" doc:"Label of the button that the person pressed or named; null: none"`
	InReply  *int64      `json:"in_reply_to" doc:"The message that it answers; null: not known"`
	Matched  *string     `json:"matched" doc:"How that message was found. payload: by the button's payload; quote: the person quoted it; latest: it was the one open question, and the text names its number or label; word: the same, with one of the client's words; null: it was not"`
	Read     bool        `json:"read"`
}

type repliesAnswer struct {
	Replies []replyRecord `json:"replies"`
	Next    *string       `json:"next_cursor"`
}

func listReplies(ctx context.Context, c *control.Client, in *call, p *repliesInput) (repliesAnswer, error) {
	page := p.page(in)
	unread := chosen(p.Unread, "unread", &page.Unknown)
	rows, next, err := c.Replies(ctx, p.Phone, unread, page)
	if err != nil {
		return repliesAnswer{}, err
	}
	return repliesAnswer{each(rows, replyOfPerson), textOrNull(next)}, nil
}

// chosen reads a query parameter that may be true or false.
func chosen(text, name string, faults *[]puntuale.Fault) bool {
	if text != "" && text != "true" && text != "false" {
		*faults = append(*faults, puntuale.Fault{Location: "query." + name, Code: puntuale.FaultNotOneOf, Args: []string{"true, false"}, Value: text})
	}
	return text == "true"
}

func replyOfPerson(y puntuale.Reply) replyRecord {
	r := replyRecord{
		ID: y.ID.String(), Phone: y.Phone, Text: y.Text, Kind: string(y.Kind), Received: stamp(y.At), Session: y.Session.String(), Read: !y.Read.IsZero(),
		Effect: textOrNull(y.Effect.String()), Payload: textOrNull(y.Payload), Button: textOrNull(y.Button), Matched: textOrNull(string(y.Matched)),
	}
	if y.InReplyTo != 0 {
		r.InReply = new(int64(y.InReplyTo))
	}
	if y.Run != 0 {
		r.Run = new(int64(y.Run))
	}
	if k := y.Kept; k != nil {
		r.File, r.Waits = textOrNull(string(k.File)), k.Waiting
		if k.Code != "" {
			r.Fault = new(catalogue.Italian.Sentence(k.Reason()))
		}
	}
	if m := y.Media; m != nil {
		r.Media = &replyMedia{m.Type, m.Name, m.Size, stampOrNull(m.Until)}
	}
	return r
}

// readBody documents the body of the call that marks replies as read.
type readBody struct {
	Phone string `json:"phone" read:"phone" doc:"The person. A number is taken too."`
	Last  string `json:"last,omitempty" read:"id" doc:"ID of the last reply that was read; else all"`
}

type readAnswer struct {
	Read int `json:"read" doc:"Replies that were unread before"`
}

func readReplies(ctx context.Context, c *control.Client, in *call, _ *struct{}, body *readBody) (readAnswer, error) {
	n, err := c.MarkReadAsked(ctx, body.Phone, body.Last, in.refused...)
	return readAnswer{n}, err
}

// replyMediaOf sends the file of a reply as a download. A browser that opens the address runs nothing in the file.
func (a *api) replyMediaOf(ctx context.Context, c *control.Client, in *call, p *oneInput) (writtenBytes, error) {
	y, err := c.Reply(ctx, p.ID)
	if err != nil {
		return nil, err
	}
	if len(in.unknown) > 0 {
		return nil, puntuale.Invalid(in.unknown...)
	}
	in.pass.LeaveSeat() // the network may need a long time to send the file
	file, err := c.OpenMedia(ctx, y)
	if err != nil {
		return nil, err
	}
	name := y.Media.Name
	if y.FileOf() != "" {
		name = y.Kept.Name
	}
	return func(out huma.Context) {
		defer file.Close()
		out.SetHeader("Content-Type", "application/octet-stream") // the list of replies shows the file's type
		out.SetHeader("Content-Length", strconv.FormatInt(file.Size, 10))
		out.SetHeader("Content-Disposition", mime.FormatMediaType("attachment", map[string]string{"filename": name}))
		out.SetHeader("X-Content-Type-Options", "nosniff")
		out.SetHeader("Content-Security-Policy", "sandbox; default-src 'none'")
		_, writer := humago.Unwrap(out)
		_ = http.NewResponseController(writer).SetWriteDeadline(a.now().Add(mediaAllows))
		if _, err := io.Copy(out.BodyWriter(), file); err != nil {
			panic(http.ErrAbortHandler) // the status was sent already, so nothing else can show that bytes are missing
		}
	}, nil
}

// mediaAllows is the longest time in which the caller must receive a file.
const mediaAllows = 5 * time.Minute
