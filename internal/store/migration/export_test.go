package migration

// UpTo runs the steps up to a number, like an older program that has no later steps.
var UpTo = up
