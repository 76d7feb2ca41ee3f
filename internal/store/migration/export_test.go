package migration

// UpTo stops after a step, like an older program that had no later steps.
var UpTo = up
