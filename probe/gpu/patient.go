package gpu

import (
	"context"
	"fmt"
	"time"
)

// Patient returns a source that does not wait for a call into a driver that hangs: it says so, and the sources beside it go on. What the
// call brings when it returns after all is part of a later sample.
func Patient(s Source, patience time.Duration) Source {
	return &patient{Source: s, patience: patience}
}

type patient struct {
	Source
	patience time.Duration
	pending  chan sampled // of the call that hangs; nil = none does
}

type sampled struct {
	batch Batch
	err   error
}

// Sample waits for as long as its patience lasts.
func (p *patient) Sample(ctx context.Context, until uint64) (Batch, error) {
	late := p.pending != nil
	if !late {
		p.pending = make(chan sampled, 1)
		go func(done chan<- sampled) {
			b, err := p.Source.Sample(ctx, until)
			done <- sampled{b, err}
		}(p.pending)
	}
	wait := p.patience
	if late { // it had its time
		wait = 0
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case s := <-p.pending:
		p.pending = nil
		return s.batch, s.err
	case <-timer.C:
		return Batch{}, fmt.Errorf("the driver does not answer")
	}
}

// Close leaves a source alone that hangs.
func (p *patient) Close() error {
	if p.pending != nil {
		return fmt.Errorf("closing %s: the driver does not answer", p.Name())
	}
	return p.Source.Close()
}

// Devices leaves a source alone that hangs: what it would say is known already.
func (p *patient) Devices(ctx context.Context) ([]Device, error) {
	if p.pending != nil {
		return nil, nil
	}
	return p.Source.Devices(ctx)
}
