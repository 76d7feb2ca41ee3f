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

// element returns a stanza with children.
func element(tag string, attributes attrs, children ...stanza) stanza {
	s := stanza{Tag: tag, Attrs: attributes}
	if len(children) > 0 {
		s.Content = children
	}
	return s
}

// data returns a stanza that contains bytes.
func data(tag string, attributes attrs, content []byte) stanza {
	return stanza{Tag: tag, Attrs: attributes, Content: content}
}

// childrenOf returns a stanza's children. It returns none if the stanza contains bytes.
func childrenOf(s stanza) []stanza { return s.GetChildren() }

// child returns the first child with a tag, or a stanza with an empty tag if there is none.
func child(s stanza, tag string) stanza {
	for _, c := range childrenOf(s) {
		if c.Tag == tag {
			return c
		}
	}
	return stanza{}
}

// bytesOf returns a stanza's content as bytes. The codec may give it as text.
func bytesOf(s stanza) []byte {
	switch content := s.Content.(type) {
	case []byte:
		return content
	case string:
		return []byte(content)
	}
	return nil
}

// text returns an attribute as text, or "" if it is missing.
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

// jid returns an address attribute. The address is empty if the attribute is missing or has another type.
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

// The function named with copies a stanza and changes attributes of the copy. The value nil removes an attribute.
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
