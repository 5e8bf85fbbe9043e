package recording

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
)

// Add decodes one note into its list. A note that says something this version does not know is counted and left out; a
// field of the wrong type is counted and left unknown, so that one odd value does not cost the rest of the note.
func (n *Notes) Add(raw []byte) {
	var fields map[string]json.RawMessage
	if json.Unmarshal(raw, &fields) != nil || fields == nil {
		n.Bad++
		return
	}
	var name string
	if json.Unmarshal(fields["note"], &name) != nil {
		n.Bad++
		return
	}
	n.addNamed(name, fields)
}

func (n *Notes) addNamed(name string, fields map[string]json.RawMessage) {
	switch name {
	case "loader":
		n.Loaders = appendNote(n.Loaders, fields, &n.Bad)
	case "clock":
		n.Clocks = appendNote(n.Clocks, fields, &n.Bad)
	case "hook-error":
		n.HookErrors = appendNote(n.HookErrors, fields, &n.Bad)
	case "save-guard":
		n.SaveGuards = appendNote(n.SaveGuards, fields, &n.Bad)
	case "sums":
		n.Sums = appendNote(n.Sums, fields, &n.Bad)
	case "hook-cost":
		n.HookCosts = appendNote(n.HookCosts, fields, &n.Bad)
	case "lost":
		n.Lost = appendNote(n.Lost, fields, &n.Bad)
	case "ended":
		n.Ended = appendNote(n.Ended, fields, &n.Bad)
	case "gpu":
		n.GPUs = appendNote(n.GPUs, fields, &n.Bad)
	case "device-name":
		n.DeviceNames = appendNote(n.DeviceNames, fields, &n.Bad)
	case "host":
		n.Hosts = appendNote(n.Hosts, fields, &n.Bad)
	case "trial":
		n.Trials = appendNote(n.Trials, fields, &n.Bad)
	case "leg-skipped":
		n.LegsSkipped = appendNote(n.LegsSkipped, fields, &n.Bad)
	case "phase":
		n.Phases = appendNote(n.Phases, fields, &n.Bad)
	case "job":
		n.Jobs = appendNote(n.Jobs, fields, &n.Bad)
	case "device":
		n.Devices = appendNote(n.Devices, fields, &n.Bad)
	case "allocation":
		n.Allocations = appendNote(n.Allocations, fields, &n.Bad)
	case "other-loader":
		n.OtherLoaders = appendNote(n.OtherLoaders, fields, &n.Bad)
	case "functions":
		n.Functions = appendNote(n.Functions, fields, &n.Bad)
	case "calls":
		n.Calls = appendNote(n.Calls, fields, &n.Bad)
	case "transforms":
		n.Transforms = appendNote(n.Transforms, fields, &n.Bad)
	default:
		n.Unknown++
	}
}

// appendNote decodes fields into a new T. A note whose identity (a number that says which loader, GPU or clock value it
// speaks of) is missing or of the wrong type is dropped: at zero it would speak of something else.
func appendNote[T Note](list []T, fields map[string]json.RawMessage, bad *uint64) []T {
	var note T
	if !decodeFields(reflect.ValueOf(&note).Elem(), fields, bad) {
		return list
	}
	return append(list, note)
}

// decodeFields fills the tagged fields of v and reports whether every plain number in it was present. A Maybe may be
// missing and then stays unknown; a plain number has no way to say so.
func decodeFields(v reflect.Value, fields map[string]json.RawMessage, bad *uint64) bool {
	complete := true
	for i := range v.NumField() {
		key, _, _ := strings.Cut(v.Type().Field(i).Tag.Get("json"), ",")
		raw, present := fields[key]
		field := v.Field(i)
		if nested, ok := field.Addr().Interface().(*LoaderArguments); ok {
			decodeArguments(nested, raw, bad)
			continue
		}
		known := present && string(raw) != "null"
		if known && json.Unmarshal(raw, field.Addr().Interface()) != nil {
			*bad++
			field.SetZero()
			known = false
		}
		if !known && (field.CanInt() || field.CanUint()) {
			complete = false
		}
	}
	if !complete {
		*bad++
	}
	return complete
}

func decodeArguments(args *LoaderArguments, raw json.RawMessage, bad *uint64) {
	var fields map[string]json.RawMessage
	if len(raw) == 0 {
		return
	}
	if json.Unmarshal(raw, &fields) != nil {
		*bad++
		return
	}
	decodeFields(reflect.ValueOf(args).Elem(), fields, bad)
}

// UnmarshalJSON accepts a leg's name or its number.
func (l *Leg) UnmarshalJSON(b []byte) error {
	var name string
	if json.Unmarshal(b, &name) == nil {
		for _, leg := range append(slices.Clone(Legs), LegTrial) {
			if strings.EqualFold(leg.String(), name) {
				*l = leg
				return nil
			}
		}
		return &json.UnmarshalTypeError{Value: "leg " + name, Type: reflect.TypeFor[Leg]()}
	}
	var number uint16
	if err := json.Unmarshal(b, &number); err != nil {
		return err
	}
	*l = Leg(number)
	return nil
}

// MarshalJSON writes the leg's name.
func (l Leg) MarshalJSON() ([]byte, error) { return json.Marshal(l.String()) }
