package soak

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/datawait/datawait/probe/recording"
)

const launch = `
begin() { # rank restart seconds
	RANK=$1 LOCAL_RANK=$1 WORLD_SIZE=2 TORCHELASTIC_RESTART_COUNT=$2 \
		"$PYTHON" "$TRAIN" plain --account account-$1-$2 --save model-$1 --seconds $3 --build 0.004 --compute 0.002 &
}
`

// Whatever a rank goes through, the ranks of one attempt leave the loader and come back to it on the same steps: in a real job one
// that does not would wait for the others in a collective.
func TestRanksSwitchOnTheSameStep(t *testing.T) {
	for name, script := range map[string]string{
		"one starts late":       "begin 0 0 60; sleep 1.5; begin 1 0 60; wait",
		"both are started anew": "begin 0 0 60; a=$!; begin 1 0 60; b=$!; sleep 5; kill -KILL $a $b; wait $a $b; begin 0 1 60; begin 1 1 60; wait",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			train, err := filepath.Abs("testdata/train.py")
			if err != nil {
				t.Fatal(err)
			}
			c := exec.Command("datawait", "diagnose", "-q", "--throwaway", "--duration", "14s", "--interval", "20ms", "--format", "json", "--out", "run",
				"--", "sh", "-c", launch+script)
			c.Dir, c.Env = dir, append(os.Environ(), "PYTHON="+python(), "TRAIN="+train)
			if text, err := c.CombinedOutput(); err != nil {
				t.Fatalf("%v\n%s", err, text)
			}
			ends := blocks(t, filepath.Join(dir, "run"))
			compared := 0
			for at, end := range ends {
				other, ok := ends[place{1 - at.rank, at.restart, at.block}]
				if ok && end != other {
					t.Errorf("block %d of attempt %d ends on step %d of one rank, %d of the other", at.block, at.restart, end, other)
				}
				if ok {
					compared++
				}
			}
			if attempts := strings.Count(fmt.Sprint(script), "begin 0"); compared < 4*attempts {
				t.Errorf("only %d blocks to compare: %v", compared, ends)
			}
		})
	}
}

type place struct{ rank, restart, block int }

// blocks are the steps on which the blocks of every rank ended.
func blocks(t *testing.T, dir string) map[place]uint32 {
	t.Helper()
	opened, err := recording.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	ends := map[place]uint32{}
	for _, node := range opened.Nodes() {
		for _, stream := range node.Streams() {
			d := stream.Declaration
			if d.Producer != recording.ProducerMain || d.Rank == nil || d.Restart == nil {
				continue
			}
			_, err := node.Stream(stream.ID, func(records []recording.Record) error {
				for i := range records {
					if records[i].Kind() != recording.KindBlock {
						continue
					}
					if b := records[i].Block(); b.Flags&recording.BlockVoid == 0 {
						ends[place{*d.Rank, *d.Restart, int(b.Block)}] = b.FirstStep + b.Steps
					}
				}
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	return ends
}
