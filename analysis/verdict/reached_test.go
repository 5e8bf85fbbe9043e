package verdict

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"testing"
)

// reached are the verdicts that some test of this package saw given.
var reached = map[string]bool{}

// notYet are the names of the contract that nothing gives, and why.
var notYet = map[string]string{}

// TestMain also holds the tests against the contract: every verdict is given in one of them, or is known not to be given at all.
func TestMain(m *testing.M) {
	flag.Parse()
	code := m.Run()
	if only := flag.Lookup("test.run"); code == 0 && (only == nil || only.Value.String() == "") {
		for _, id := range IDs() {
			switch _, missing := notYet[id]; {
			case missing == slices.Contains(Given(), id):
				fmt.Println("the list of verdicts that nothing gives is wrong about", id)
				code = 1
			case !missing && !reached[id]:
				fmt.Println("no test reaches", id)
				code = 1
			}
		}
	}
	os.Exit(code)
}
