package host

import (
	"bytes"
	"fmt"
	"path"
	"strconv"
	"strings"
)

// membership says in which control groups a process is: /proc/PID/cgroup (cgroups(7)), as seen from the cgroup namespace
// of the reader.
//
//	4:cpu,cpuacct:/docker/1f3a    a version 1 hierarchy, its controllers and the group's path
//	0::/kubepods/pod7/1f3a        the version 2 hierarchy
//
// Both kinds of line appear on hybrid machines, where a controller belongs to one of the two.
type membership struct {
	v1 map[string]string // controller → path
	v2 string            // "" = the process is in no version 2 group
}

func parseMembership(b []byte) membership {
	m := membership{v1: map[string]string{}}
	for len(b) > 0 {
		var line []byte
		line, b = nextLine(b)
		id, rest, ok1 := bytes.Cut(line, []byte{':'})
		controllers, group, ok2 := bytes.Cut(rest, []byte{':'})
		switch {
		case !ok1 || !ok2 || !bytes.HasPrefix(group, []byte{'/'}):
		case string(id) == "0" && len(controllers) == 0:
			m.v2 = string(group)
		default:
			for c := range bytes.SplitSeq(controllers, []byte{','}) {
				m.v1[string(c)] = string(group)
			}
		}
	}
	return m
}

// cgroupMount is one control group file system: line of /proc/self/mountinfo (proc_pid_mountinfo(5)).
//
//	33 31 0:30 / /sys/fs/cgroup/cpu,cpuacct rw,nosuid shared:9 - cgroup cgroup rw,cpu,cpuacct
type cgroupMount struct {
	root    string   // the group that is seen at the mount point
	point   string   // where
	version int      // 1 or 2
	options []string // of a version 1 mount, its controllers among them
}

func parseCgroupMounts(b []byte) (mounts []cgroupMount) {
	for len(b) > 0 {
		var line []byte
		line, b = nextLine(b)
		mount, fileSystem, found := bytes.Cut(line, []byte(" - "))
		if !found || !bytes.HasPrefix(fileSystem, []byte("cgroup")) {
			continue
		}
		kind, rest := nextField(fileSystem)
		_, rest = nextField(rest) // the mount's source
		options, _ := nextField(rest)
		root, rest := nextField(skipFields(mount, 3))
		point, _ := nextField(rest)
		m := cgroupMount{root: unescape(root), point: unescape(point)}
		switch string(kind) {
		case "cgroup":
			m.version, m.options = 1, strings.Split(string(options), ",")
		case "cgroup2":
			m.version = 2
		default:
			continue
		}
		if path.IsAbs(m.root) && path.IsAbs(m.point) {
			mounts = append(mounts, m)
		}
	}
	return mounts
}

// unescape undoes the octal escapes of /proc/PID/mountinfo: blank, tab, line end and backslash.
func unescape(b []byte) string {
	var out strings.Builder
	for i := 0; i < len(b); i++ {
		if b[i] == '\\' && i+3 < len(b) {
			if c, err := strconv.ParseUint(string(b[i+1:i+4]), 8, 8); err == nil {
				out.WriteByte(byte(c))
				i += 3
				continue
			}
		}
		out.WriteByte(b[i])
	}
	return out.String()
}

// carries reports whether the mount shows a controller of version 1.
func (m cgroupMount) carries(controller string) bool {
	for _, o := range m.options {
		if o == controller {
			return m.version == 1
		}
	}
	return false
}

// folders lists the folders of a group and of all groups above it that the mount shows, the innermost first. A limit may
// stand at each: the least counts. ok is false if the group lies outside what the mount shows, as that of a process in
// another container does.
func (m cgroupMount) folders(group string) (list []string, ok bool) {
	inside := group
	if m.root != "/" {
		rest, under := strings.CutPrefix(group, m.root)
		if !under || rest != "" && rest[0] != '/' {
			return nil, false
		}
		inside = "/" + strings.TrimPrefix(rest, "/")
	}
	if !path.IsAbs(inside) || strings.Contains(inside+"/", "/../") { // "/../other": above the root of the reader's cgroup namespace
		return nil, false
	}
	for inside = path.Clean(inside); inside != "/"; inside = path.Dir(inside) {
		list = append(list, m.point+inside)
	}
	return append(list, m.point), true
}

// groups knows where the control groups of one process are.
type groups struct {
	files   *files
	mounts  []cgroupMount
	members membership
}

// groupsOf reads where the control groups of a process are.
func groupsOf(f *files, pid int) (*groups, error) {
	b, err := f.read(f.ofProcess(pid, "cgroup"))
	if err != nil {
		return nil, err
	}
	g := &groups{files: f, members: parseMembership(b)}
	if b, err = f.read(f.Proc + "/self/mountinfo"); err != nil {
		return nil, err
	}
	g.mounts = parseCgroupMounts(b)
	for i := range g.mounts {
		g.mounts[i].point = f.underCgroup(g.mounts[i].point)
	}
	return g, nil
}

// underCgroup moves a mount point under the injected root.
func (f FS) underCgroup(point string) string {
	if rest, ok := strings.CutPrefix(point, defaultCgroupMount); ok && (rest == "" || rest[0] == '/') {
		return f.Cgroup + rest
	}
	return point
}

// chain is the groups that bound one controller for one process, the innermost first.
type chain struct {
	version int
	path    string // of the process's group, as /proc/PID/cgroup has it
	folders []string
}

// chainOf finds the groups of a controller: in version 1 if a hierarchy there has it, else in version 2.
func (g *groups) chainOf(controller string) (chain, error) {
	group, v1 := g.members.v1[controller]
	version := 1
	if !v1 {
		group, version = g.members.v2, 2
	}
	if group == "" {
		return chain{}, fmt.Errorf("finding the %s control group: the process is in none", controller)
	}
	why := "it is not mounted here"
	for _, m := range g.mounts {
		if m.version != version || version == 1 && !m.carries(controller) {
			continue
		}
		if folders, ok := m.folders(group); ok {
			return chain{version, group, folders}, nil
		}
		why = "it lies outside what this container shows"
	}
	return chain{}, fmt.Errorf("finding the %s control group %s: %s", controller, group, why)
}

// describe returns a text for the host note: version and path of the group that bounds the CPU.
func (c chain) describe() string { return fmt.Sprintf("v%d %s", c.version, c.path) }

// outermostOfMachine reports whether the outermost group that is seen is the machine's, and not that of a container. In
// version 1 only the machine's has a release_agent (kernel/cgroup/cgroup-v1.c), in version 2 all others have a cgroup.type
// (kernel/cgroup/cgroup.c): CFTYPE_ONLY_ON_ROOT and CFTYPE_NOT_ON_ROOT.
func (c chain) outermostOfMachine() bool {
	outermost := c.folders[len(c.folders)-1]
	if c.version == 1 {
		return exists(outermost + "/release_agent")
	}
	return !exists(outermost + "/cgroup.type")
}
