package live

import "testing"

// A row that comes again after it was forgotten is another one.
func TestAForgottenRowIsAnother(t *testing.T) {
	m := newMachine(t, 0)
	m.gpu(0, "GPU-a")
	since := func(begin float64) [3]uint64 {
		p := m.train(int(begin), "train.py", "GPU-a", begin)
		m.Tick(at(begin + 1))
		p.steps(begin+1, 5, 0.1, 0.1, 0)
		p.end(begin + 5)
		m.Tick(at(begin + 6))
		s := m.Snapshot()
		if len(s.Ranks) != 1 || len(s.Tenancies) != 1 || len(s.Jobs) != 1 {
			t.Fatalf("%+v", s)
		}
		m.Tick(at(begin + 20))
		return [3]uint64{s.Ranks[0].Since, s.Tenancies[0].Since, s.Jobs[0].Since}
	}
	first, soon := since(10), since(60)
	m.Tick(at(200))
	m.Tick(at(400))
	late := since(500)
	if first != soon {
		t.Errorf("a job that goes on began at %v and at %v", first, soon)
	}
	for i := range late {
		if late[i] <= first[i] {
			t.Errorf("what was forgotten began at %v, and again at %v", first, late)
		}
	}
}
