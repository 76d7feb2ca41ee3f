package httpapi

import (
	"reflect"

	"github.com/danielgtaylor/huma/v2"

	"puntuale"
)

// triggerValue, conditionsValue and actionValue are the parts of an automation in answers. Package puntuale defines
// their JSON form, and automation.go documents it.
type (
	triggerValue    struct{ puntuale.Trigger }
	conditionsValue struct{ puntuale.Conditions }
	actionValue     struct{ puntuale.Action }
)

// Schema describes a trigger to huma.
func (triggerValue) Schema(r huma.Registry) *huma.Schema {
	return r.Schema(reflect.TypeFor[triggerBody](), true, "")
}

// Schema describes conditions to huma.
func (conditionsValue) Schema(r huma.Registry) *huma.Schema {
	return r.Schema(reflect.TypeFor[conditionsBody](), true, "")
}

// Schema describes an action to huma.
func (actionValue) Schema(r huma.Registry) *huma.Schema {
	return r.Schema(reflect.TypeFor[actionBody](), true, "")
}
