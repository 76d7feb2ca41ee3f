// Package web is the pages for people: a partner's dashboard, a client's, and the way in.
package web
