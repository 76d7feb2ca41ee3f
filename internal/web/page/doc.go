// Package page has what every page needs: the request and its person, routes and roles, the frame and the navigation. It also has the
// visits of browsers, faults of forms, streams of events, uploads and downloads. It knows no feature.
//
// A feature declares routes with [Get] and [Post], and its handlers take a [Request]. [NewHandler] makes the handler of all pages from the
// routes of all features.
package page
