// Package page contains the parts that every page needs: the request and its person, routes and roles, the frame and
// the navigation. It also contains the visits of browsers, faults of forms, streams of events, uploads and downloads.
// It contains no code of a single feature.
//
// A feature declares routes with [Get] and [Post], and its handlers receive a [Request]. [NewHandler] makes the handler
// of all pages from the routes of all features.
package page
