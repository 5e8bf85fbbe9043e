package cli

import (
	"bufio"
	"fmt"
	"io"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/datawait/datawait/probe/recording"
)

const windowsLong = `windows prints the GPU counter windows of a recording as CSV, in the order they were written: times in ns of CLOCK_MONOTONIC on
the machine that recorded, ratios 0-1, and nothing where a value is not known.`

// newWindows is for checks and for people who want to see for themselves.
func newWindows(s Streams) *cobra.Command {
	return &cobra.Command{
		Use:     "windows DIR",
		Short:   "Print the GPU counter windows of a recording as CSV",
		Long:    windowsLong,
		Example: "  datawait windows report > windows.csv",
		Hidden:  true,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usage("`datawait windows --help` shows how to call it", "windows takes one recording, but was given %d", len(args))
			}
			r, err := recording.Open(args[0])
			if err != nil {
				return failed(err, statusFailed)
			}
			out := bufio.NewWriter(s.Out)
			if err := writeWindows(out, r); err != nil {
				return failed(err, statusFailed)
			}
			return out.Flush()
		},
	}
}

func writeWindows(w io.Writer, r *recording.Recording) error {
	fmt.Fprintln(w, "uuid,source,begin_ns,end_ns,untrusted,sm,resident,tensor,dram,copy")
	for _, reader := range r.Readers() {
		for _, stream := range reader.Streams() {
			named := map[uint16]recording.GPUNote{}
			for _, note := range stream.Notes.GPUs {
				named[note.GPU] = note
			}
			_, err := reader.Stream(stream.ID, func(records []recording.Record) error {
				for i := range records {
					if records[i].Kind() == recording.KindGPU {
						writeWindow(w, records[i].GPU(), named)
					}
				}
				return nil
			})
			if err != nil {
				return err
			}
		}
	}
	return nil
}

func writeWindow(w io.Writer, g recording.GPU, named map[uint16]recording.GPUNote) {
	note := named[g.Ref]
	fmt.Fprintf(w, "%s,%s,%d,%d,%t", note.UUID, note.Source, g.Begin, g.End, g.Flags&recording.GPUUntrusted != 0)
	for _, v := range []float32{g.SM, g.Resident, g.Tensor, g.DRAM, g.Copy} {
		text := ""
		if v == v {
			text = strconv.FormatFloat(float64(v), 'g', 6, 32)
		}
		fmt.Fprint(w, ","+text)
	}
	fmt.Fprintln(w)
}
