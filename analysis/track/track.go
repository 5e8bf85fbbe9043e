// Package track is the tool's own track record: predictions that were checked against a run in which their fix had been applied.
//
// It decides what one checked prediction is, how a file of them is read, and what is quoted of it. Nothing in such a file is
// trusted: a line that is damaged, impossible or too long is counted and passed over, and a prediction that was checked twice
// counts once. Where the file lies and who writes it is the command's business.
//
// Read [Entry] and [TrackRecord] first.
package track

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"slices"
	"time"

	"github.com/datawait/datawait/probe/unit"
)

// Schema is the name and version of a line.
const Schema = "datawait.track-record/1"

// Entry is one prediction and what came of it.
type Entry struct {
	Schema   string    `json:"schema"`
	At       time.Time `json:"at"` // when it was checked
	Version  string    `json:"datawait_version"`
	Key      string    `json:"key"` // the same for the same two runs and fix
	Emulated bool      `json:"emulated"`
	Fix      string    `json:"fix"`
	Metric   string    `json:"metric"` // step_seconds or epoch_seconds
	// Predicted is a value with its 95 % interval, Measured what the later run took; seconds.
	Predicted float64 `json:"predicted"`
	Low       float64 `json:"low"`
	High      float64 `json:"high"`
	Measured  float64 `json:"measured"`
}

// Within reports whether the measured value fell within the predicted interval.
func (e Entry) Within() bool { return e.Low <= e.Measured && e.Measured <= e.High }

// Error is how far the measured value lies from the predicted one, as a share of the predicted one.
func (e Entry) Error() float64 { return e.Measured/e.Predicted - 1 }

// valid refuses what no check can have written.
func (e Entry) valid() bool {
	for _, v := range []float64{e.Predicted, e.Low, e.High, e.Measured} {
		if math.IsNaN(v) || math.IsInf(v, 0) || v < 0 {
			return false
		}
	}
	return e.Schema == Schema && e.Key != "" && e.Predicted > 0 && e.Measured > 0 && e.Low <= e.Predicted && e.Predicted <= e.High && e.Low < e.High
}

// Line is the entry as one line of the file, with its end.
func (e Entry) Line() ([]byte, error) {
	if !e.valid() {
		return nil, fmt.Errorf("writing a line of the track record: no prediction with an interval, or nothing measured: %+v", e)
	}
	line, err := json.Marshal(e)
	if err != nil {
		return nil, fmt.Errorf("writing a line of the track record: %w", err)
	}
	return append(line, '\n'), nil
}

// longest is how long a line may be; one that was written is a third of a kilobyte.
const longest = 16 << 10

// Read returns the entries of a file, one per prediction, and how many lines could not be understood. Only r can make it fail.
func Read(r io.Reader) (entries []Entry, damaged int, err error) {
	at := map[string]int{}
	b := bufio.NewReaderSize(r, longest)
	for {
		line, long, err := nextLine(b)
		if e, ok := parse(line); ok && !long {
			if i, again := at[e.Key]; again {
				entries[i] = e
			} else {
				at[e.Key] = len(entries)
				entries = append(entries, e)
			}
		} else if long || len(bytes.TrimSpace(line)) > 0 {
			damaged++
		}
		if err == io.EOF {
			return entries, damaged, nil
		}
		if err != nil {
			return entries, damaged, fmt.Errorf("reading the track record: %w", err)
		}
	}
}

// nextLine returns a line, or the beginning of one that is too long, whose rest is skipped.
func nextLine(b *bufio.Reader) (line []byte, long bool, err error) {
	line, err = b.ReadSlice('\n')
	for err == bufio.ErrBufferFull {
		long = true
		_, err = b.ReadSlice('\n')
	}
	return line, long, err
}

func parse(line []byte) (Entry, bool) {
	var e Entry
	if json.Unmarshal(line, &e) != nil {
		return Entry{}, false
	}
	return e, e.valid()
}

// TrackRecord is what is quoted of the predictions that were checked on this machine. Those made on the emulated device and those on
// real ones are never counted together.
type TrackRecord struct {
	Checked     int                 `json:"checked"`
	Within      int                 `json:"within"`       // their 95 % interval
	MedianError unit.Maybe[float64] `json:"median_error"` // of the sizes of the errors, as a share of the prediction
	MedianWidth unit.Maybe[float64] `json:"median_width"` // of the intervals, as a share of the prediction: a wide one is easily met
	Emulated    bool                `json:"emulated"`     // of predictions on the emulated device
}

// Summarise counts the entries of one kind; nil where there is none.
func Summarise(entries []Entry, emulated bool) *TrackRecord {
	t := TrackRecord{Emulated: emulated}
	var errors, widths []float64
	for _, e := range entries {
		if e.Emulated != emulated {
			continue
		}
		t.Checked++
		if e.Within() {
			t.Within++
		}
		errors, widths = append(errors, math.Abs(e.Error())), append(widths, (e.High-e.Low)/e.Predicted)
	}
	if t.Checked == 0 {
		return nil
	}
	t.MedianError, t.MedianWidth = median(errors), median(widths)
	return &t
}

func median(v []float64) unit.Maybe[float64] {
	slices.Sort(v)
	n := len(v)
	return unit.Float((v[(n-1)/2]+v[n/2])/2, "it is no number")
}
