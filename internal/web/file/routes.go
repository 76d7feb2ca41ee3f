// Package file has the page of a client's files. It also receives the files that people upload in the forms of other pages,
// and shows them.
package file

// Routes are all pages of the package.
var Routes = fileRoutes
