package plots

import (
	"fmt"
	"image/color"
	"maps"
	"slices"
	"strings"
)

// role is what a colour is for. Its light value also names it inside an SVG, so all values differ.
type role struct {
	name        string
	light, dark color.RGBA
}

func rgb(hex uint32) color.RGBA {
	return color.RGBA{uint8(hex >> 16), uint8(hex >> 8), uint8(hex), 255}
}

func newRole(name string, light, dark uint32) role { return role{name, rgb(light), rgb(dark)} }

// The colours. Orange is waiting, blue is working, greys are neither; text and bars keep a contrast of at least 4.5 and 3 to the paper.
var (
	paper      = newRole("paper", 0xffffff, 0x15181c)
	ink        = newRole("ink", 0x1b1f24, 0xe7e9ec)
	muted      = newRole("muted", 0x57606a, 0x9da7b3)
	rule       = newRole("rule", 0xdfe3e8, 0x30363d)
	track      = newRole("track", 0xeff1f4, 0x22272d)
	waiting    = newRole("waiting", 0xc4560f, 0xf0883e)
	startOf    = newRole("start", 0xdb9a5e, 0xb5713a)
	working    = newRole("working", 0x1f6fb5, 0x58a6ff)
	matrix     = newRole("matrix", 0x12406e, 0x8ec5ff)
	resident   = newRole("resident", 0x7fb0da, 0x3a6ea5)
	held       = newRole("held", 0x7d8894, 0x7a8490)
	allocated  = newRole("allocated", 0xa9b2bc, 0x59636e)
	copying    = newRole("copying", 0x7a5ba6, 0xb392f0)
	collective = newRole("collective", 0x24827a, 0x56b6ad)
	hostWork   = newRole("host", 0x68788a, 0x8493a3)
	pausing    = newRole("pausing", 0x7f7d35, 0xb5b35c)
	idle       = newRole("idle", 0xc3cad2, 0x444c55)
	unclear    = newRole("unclear", 0xd6dbe1, 0x383f47)
)

var roles = []role{paper, ink, muted, rule, track, waiting, startOf, working, matrix, resident, held, allocated, copying, collective, hostWork, pausing, idle, unclear}

// partRoles colours accounts and parts.
var partRoles = map[string]role{
	"exposed_wait": waiting, "data_wait": waiting, "off_cpu": waiting, "epoch_start": startOf, "compute": working, "cpu": working, "copy": copying,
	"collective": collective, "host": hostWork, "run_queue": copying, "validation": pausing, "checkpoint": held, "startup": resident, "idle_held": idle,
	"read": waiting, "decode": working, "join": collective, "tokenise": matrix, "transform": resident, "augment": copying, "collate": pausing,
	"other": held, "blocked": startOf,
	"not_held": allocated, "unattributed": unclear, "unexplained": unclear,
}

func partRole(id string) role {
	if r, ok := partRoles[id]; ok {
		return r
	}
	return hostWork
}

// Variables returns the colours as CSS custom properties, one set for light and one for dark.
func Variables() (light, dark string) {
	var l, d strings.Builder
	for _, r := range roles {
		fmt.Fprintf(&l, "--%s:%s;", r.name, hex(r.light))
		fmt.Fprintf(&d, "--%s:%s;", r.name, hex(r.dark))
	}
	return l.String(), d.String()
}

// Classes returns style rules that fill a shape whose class is the name of a part or account.
func Classes() string {
	var out strings.Builder
	for _, id := range slices.Sorted(maps.Keys(partRoles)) {
		fmt.Fprintf(&out, ".%s{fill:var(--%s)}", id, partRoles[id].name)
	}
	return out.String()
}

func hex(c color.RGBA) string { return fmt.Sprintf("#%02x%02x%02x", c.R, c.G, c.B) }
