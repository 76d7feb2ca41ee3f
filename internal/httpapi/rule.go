package httpapi

import (
	"reflect"

	"github.com/danielgtaylor/huma/v2"

	"puntuale"
)

// triggerValue, conditionsValue and actionValue are the parts of an automation in answers. Package puntuale defines their JSON form. automation.go
// documents it.
type (
	triggerValue    struct{ puntuale.Trigger }
	conditionsValue struct{ puntuale.Conditions }
	actionValue     struct{ puntuale.Action }
)

// Schema tells huma what a trigger is.
func (triggerValue) Schema(r huma.Registry) *huma.Schema {
	return r.Schema(reflect.TypeFor[triggerBody](), true, "")
}

// Schema tells huma what conditions are.
func (conditionsValue) Schema(r huma.Registry) *huma.Schema {
	return r.Schema(reflect.TypeFor[conditionsBody](), true, "")
}

// Schema tells huma what an action is.
func (actionValue) Schema(r huma.Registry) *huma.Schema {
	return r.Schema(reflect.TypeFor[actionBody](), true, "")
}
