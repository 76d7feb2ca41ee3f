//go:build !nosocket

package whatsapptest

import (
	"fmt"
	"strconv"
	"time"

	waBinary "go.mau.fi/whatsmeow/binary"
	"go.mau.fi/whatsmeow/types"
)

type (
	stanza = waBinary.Node
	attrs  = waBinary.Attrs
)

// element builds a stanza with children.
func element(tag string, attributes attrs, children ...stanza) stanza {
	s := stanza{Tag: tag, Attrs: attributes}
	if len(children) > 0 {
		s.Content = children
	}
	return s
}

// data builds a stanza with bytes.
func data(tag string, attributes attrs, content []byte) stanza {
	return stanza{Tag: tag, Attrs: attributes, Content: content}
}

// childrenOf are a stanza's children; none if it has bytes.
func childrenOf(s stanza) []stanza { return s.GetChildren() }

// child finds the first child with a tag; a stanza with an empty tag if there is none.
func child(s stanza, tag string) stanza {
	for _, c := range childrenOf(s) {
		if c.Tag == tag {
			return c
		}
	}
	return stanza{}
}

// bytesOf is a stanza's content, which the codec may also give as text.
func bytesOf(s stanza) []byte {
	switch content := s.Content.(type) {
	case []byte:
		return content
	case string:
		return []byte(content)
	}
	return nil
}

// text is an attribute as it would be printed; "" if it is missing.
func text(s stanza, name string) string {
	switch value := s.Attrs[name].(type) {
	case nil:
		return ""
	case string:
		return value
	case types.JID:
		return value.String()
	default:
		return fmt.Sprint(value)
	}
}

// jid is an address attribute; empty if it is missing or not one.
func jid(s stanza, name string) types.JID {
	address, _ := s.Attrs[name].(types.JID)
	return address
}

func number(s stanza, name string) int {
	n, err := strconv.Atoi(text(s, name))
	if err != nil {
		return 0
	}
	return n
}

// The function with copies a stanza and sets attributes of the copy; nil takes one away.
func with(s stanza, changes attrs) stanza {
	changed := make(attrs, len(s.Attrs)+len(changes))
	for name, value := range s.Attrs {
		changed[name] = value
	}
	for name, value := range changes {
		if value == nil {
			delete(changed, name)
		} else {
			changed[name] = value
		}
	}
	s.Attrs = changed
	return s
}

func seconds(at time.Time) string { return strconv.FormatInt(at.Unix(), 10) }
