package lab

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"
	"time"
)

// heading explains the table; what follows it is one row a scenario.
const heading = `# What the lab found

Every scenario is a job whose answer is known by arithmetic or from a public case. ` + "`make lab`" + ` runs each on real PyTorch with the emulated device under
` + "`datawait diagnose`" + `, makes the change that is ranked first for real, and runs it again without datawait. Truth is the script's own clock.

*pace* is milliseconds from one step to the next by that clock, epoch starts and stalls included; *by arithmetic* is the steady step alone. *model* is how far the model
is from the step it should explain. *promised* is the pace after the first fix by the report, with its interval; *found* is that pace once the change was made.
A row on which something else used the machine too much proves nothing and is marked **INCONCLUSIVE**, with the cores that were busy.

| scenario | verdict | right | first fix | right | model | by arithmetic | pace | promised | found | off by | on | |
|---|---|---|---|---|---|---|---|---|---|---|---|---|
`

// write puts a row into the table at path, in place of the one of the same name.
func write(path string, o outcome) error {
	text, err := os.ReadFile(path)
	if err != nil && !os.IsNotExist(err) {
		return err
	}
	rows := map[string]string{}
	for line := range strings.Lines(string(text)) {
		if cells := strings.Split(line, " | "); strings.HasPrefix(line, "| ") && len(cells) > 10 {
			rows[strings.TrimPrefix(cells[0], "| ")] = line
		}
	}
	rows[o.name] = o.row()
	var out strings.Builder
	out.WriteString(heading)
	for _, s := range scenarios {
		out.WriteString(rows[s.name])
	}
	return os.WriteFile(path, []byte(out.String()), 0o644)
}

func (o outcome) row() string {
	verdict, promised, found, off := "none", "", "", ""
	if len(o.report.Verdicts) > 0 {
		verdict = o.report.Verdicts[0].ID
	}
	if value, low, high, ok := o.predicted(); ok {
		promised = fmt.Sprintf("%.1f (%.1f–%.1f)", 1e3*value, 1e3*low, 1e3*high)
		if o.after != nil {
			found = fmt.Sprintf("%.1f", 1e3**o.after)
			off = fmt.Sprintf("%+.0f %%", 100*(*o.after-value)/value)
		}
	}
	first := o.firstFix()
	if first == "" {
		first = "none"
	}
	note := machine()
	if !o.quiet {
		note = fmt.Sprintf("**INCONCLUSIVE** (%.2f cores busy) ", o.foreignCores) + note
	}
	cells := []string{o.name, verdict, yes(o.verdict), first, yes(o.fix), number(o.report.Model.Error), milliseconds(o.step), milliseconds(o.truth.pace),
		promised, found, off, time.Now().Format("2006-01-02"), note}
	return "| " + strings.Join(cells, " | ") + " |\n"
}

func yes(wrong string) string {
	if wrong == "" {
		return "yes"
	}
	return "**no**"
}

func number(v *float64) string {
	if v == nil {
		return "unknown"
	}
	return fmt.Sprintf("%.0f %%", 100**v)
}

func milliseconds(seconds float64) string {
	if seconds == 0 {
		return ""
	}
	return fmt.Sprintf("%.1f", 1e3*seconds)
}

// machine names what the scenarios ran on.
func machine() string {
	kernel, _ := exec.Command("uname", "-sr").Output()
	return fmt.Sprintf("%d cores, %s", runtime.NumCPU(), strings.TrimSpace(string(kernel)))
}

// A row replaces the one of its scenario and no other, in the order of the scenarios.
func TestTableKeepsOtherRows(t *testing.T) {
	path := t.TempDir() + "/table.md"
	for _, o := range []outcome{{scenario: scenario{name: "S03"}}, {scenario: scenario{name: "S01"}}, {scenario: scenario{name: "S03"}, quiet: true}} {
		if err := write(path, o); err != nil {
			t.Fatal(err)
		}
	}
	text, _ := os.ReadFile(path)
	rows := strings.TrimPrefix(string(text), heading)
	if n := strings.Count(rows, "\n"); n != 2 || !strings.HasPrefix(rows, "| S01 |") || strings.Count(rows, "INCONCLUSIVE") != 1 {
		t.Errorf("%s", rows)
	}
}
