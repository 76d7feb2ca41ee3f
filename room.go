package puntuale

import "context"

// Room is the memory that one call from outside may take for its answer. What reads something long asks for room first,
// so that slow readers of long answers cannot take all memory there is. The room is given back when the call ends.
type Room interface {
	// Take asks for so many bytes more. Codes: overloaded; rate_limited when the same caller holds too much already.
	Take(bytes int64) error
}

type roomKey struct{}

// WithRoom gives the call that ctx belongs to its room.
func WithRoom(ctx context.Context, r Room) context.Context {
	return context.WithValue(ctx, roomKey{}, r)
}

// TakeRoom asks for so many bytes of the room of the call that ctx belongs to. Without a room there is no limit. Codes: as
// [Room].
func TakeRoom(ctx context.Context, bytes int64) error {
	if r, ok := ctx.Value(roomKey{}).(Room); ok {
		return r.Take(bytes)
	}
	return nil
}
