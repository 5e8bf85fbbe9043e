// Package view is the display model of a report: every word, rounding and order a reader meets is decided here, once.
//
// The renderers (terminal, html, markdown, plots) lay a [View] out and decide nothing, so two of them can never disagree
// about a number. It refuses to show what is not known: a missing value becomes the words that say why, never a 0, and a
// number that has an interval and a grade keeps them beside it. Everything that came from outside (names, commands,
// reasons) passes [Clean], so no control character, no text that runs backwards and no 10 kB name reaches a renderer;
// escaping for its own medium is left to each.
//
// Read [View] and [Quantity] first; [New] builds them.
//
// A no-break space joins a number to its unit. Renderers that break lines by themselves replace it at the very end.
package view

import "github.com/datawait/datawait/analysis"

// View is a whole report, ready to be laid out. Slices may be empty; an empty one means that the part has nothing to say.
type View struct {
	Title     string   // one plain line: the verdict, for a window title or a ticket
	When      string   // when the run began, "2026-11-30 07:12 UTC"; "" where unknown
	Subject   []Phrase // what ran, in pieces that a renderer joins with " · "
	Banners   []Banner // what a reader must know before any number
	Headline  Headline
	Proof     []string  // sentences that prove the headline, strongest first
	Bullets   []string  // the three points that carry a ticket
	Causes    []Finding // the findings that explain the headline and are not the headline itself
	Findings  []Finding // all, most important first
	Ladder    Ladder
	Test      Test
	Step      Anatomy   // the mean step; no parts where no step was seen
	Batches   []Anatomy // one per data loader: where the time to build a batch goes
	Stages    []Stages  // the same, by what the code does, where stacks were looked at
	Fixes     Fixes
	NoHelp    []NoHelp
	NoHelpIn  []string   // the first of them in short, those with one reason together
	Unpriced  []Unpriced // may help, by how much this run cannot tell
	Sure      []string   // how far to trust all this, in pieces joined with " · "
	Timeline  Timeline
	GPUs      GPUs
	Devices   Table // every rank and every GPU
	Loaders   Table
	Accounts  Accounts
	Host      []Fact // what the machine around the job did
	Dropped   []Dropped
	Gaps      []Gap // what was not measured
	Method    []Fact
	Quality   []Fact
	Warnings  []string
	Reproduce []string // shell commands, one a line
	Terms     []Term   // the words of the report, each explained once
}

// Phrase is a piece of text. Name says that it came from the job, so that Markdown sets it as code and nothing in it is read as markup.
type Phrase struct {
	Text string
	Name bool
}

// Banner is a warning above the verdict.
type Banner struct {
	Kind string // emulated, unmeasured, withheld, unfinished, damaged or untrusted
	Lead string // two or three words
	Text string // one sentence
}

// Headline is the verdict: a few words, and the sentences that give its size.
type Headline struct {
	Lead   string
	Text   string  // each number with its interval and grade
	Plain  string  // the same without them, for a title
	Pieces []Piece // Text, cut where a renderer may want to write smaller
}

// Piece is a part of a sentence; Aside marks an interval and grade in parentheses.
type Piece struct {
	Text  string
	Aside bool
}

// Finding is one verdict with its evidence.
type Finding struct {
	ID          string
	Title       string
	Short       string // title, share and confidence in one line
	Confidence  Quantity
	Share       Quantity
	ShareOf     string // "of a step" or "of the run"
	Evidence    []Evidence
	FalsifiedBy string
}

// Evidence is one number behind a finding.
type Evidence struct {
	Metric string
	Value  Quantity
	Source string
}

// Dropped is a finding that was considered and rejected.
type Dropped struct{ ID, Reason string }

// NoHelp is common advice that does nothing here.
type NoHelp struct {
	Title  string
	Reason string
	Saved  Quantity // of the step
}

// Unpriced is a change that may help; Reason says what is missing to tell how much.
type Unpriced struct{ Title, How, Recipe, Reason string }

// Gap is something that was not measured.
type Gap struct{ What, Why string }

// Fact is one line of method or quality.
type Fact struct{ Name, Text string }

// Term is a word of the report and its meaning.
type Term struct{ Word, Meaning string }

// New builds the display model of one result. It never fails: whatever r lacks becomes words.
func New(r *analysis.Result) View {
	v := View{
		When:      when(r),
		Subject:   subject(r),
		Banners:   banners(r),
		Headline:  headline(r),
		Proof:     proof(r),
		Findings:  findings(r),
		Ladder:    ladder(r),
		Test:      cachedTest(r),
		Step:      step(r),
		Batches:   batches(r),
		Stages:    stages(r),
		Fixes:     fixes(r),
		NoHelp:    noHelp(r),
		Unpriced:  unpriced(r),
		Sure:      sure(r),
		Timeline:  timeline(r),
		GPUs:      gpusOf(r),
		Devices:   devices(r),
		Loaders:   loaders(r),
		Accounts:  accounts(r),
		Host:      host(r),
		Dropped:   dropped(r),
		Gaps:      gaps(r),
		Method:    method(r),
		Quality:   quality(r),
		Warnings:  warnings(r),
		Reproduce: reproduce(r),
		Terms:     terms(),
	}
	v.Title = title(v.Headline)
	v.NoHelpIn = inShort(v.NoHelp)
	v.Causes = causes(v.Findings)
	v.Bullets = bullets(v)
	return v
}
