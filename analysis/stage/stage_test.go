package stage

import (
	"math"
	"slices"
	"strings"
	"testing"
)

func TestTheTableIsReadWhole(t *testing.T) {
	rows := 0
	for _, line := range strings.Split(table, "\n") {
		if strings.HasPrefix(line, "| ") && !strings.HasPrefix(line, "| class") {
			rows++
		}
	}
	if len(rules) != rows || rows < 20 {
		t.Errorf("%d rules of %d rows", len(rules), rows)
	}
}

func TestAWrongTableIsRefused(t *testing.T) {
	for name, row := range map[string]string{
		"no such class": "| reed | `*` | read | |",
		"no file":       "| read | | read | |",
		"no function":   "| read | `*` | | |",
	} {
		if _, err := parse(row); err == nil {
			t.Errorf("%s: taken", name)
		}
	}
}

const fetchPath = "torch/utils/data/_utils/fetch.py:_MapDatasetFetcher.fetch train.py:Photos.__getitem__ "

func TestWhichFunctionIsWhichKindOfWork(t *testing.T) {
	for _, c := range []struct {
		path    string
		on, off Class
		by      string
	}{
		{"train.py:read", Read, Read, "train.py:read"},
		{"train.py:load_image", Decode, Read, "train.py:load_image"},
		{"train.py:load_image PIL/Image.py:open", Read, Read, "PIL/Image.py:open"},
		{"train.py:load_image PIL/Image.py:Image.convert PIL/ImageFile.py:ImageFile.load", Decode, Read, "PIL/ImageFile.py:ImageFile.load"},
		{"train.py:thread_pool", Other, Other, ""},
		{"train.py:spread", Other, Other, ""},
		{"train.py:readBytes", Read, Read, "train.py:readBytes"},
		{"train.py:_read", Read, Read, "train.py:_read"},
		{"train.py:augment train.py:crop", Transform, Transform, "train.py:crop"},
		{"train.py:random_crop", Augment, Augment, "train.py:random_crop"},
		{"torchvision/transforms/transforms.py:Compose.__call__ torchvision/transforms/transforms.py:RandomResizedCrop.forward torchvision/transforms/functional.py:resize PIL/Image.py:Image.resize",
			Augment, Augment, "torchvision/transforms/transforms.py:RandomResizedCrop.forward"},
		{"torchvision/transforms/transforms.py:Resize.forward torchvision/transforms/functional.py:resize", Transform, Transform, "torchvision/transforms/transforms.py:Resize.forward"},
		{"PIL/Image.py:Image.resize", Transform, Transform, "PIL/Image.py:Image.resize"}, // from nobody that is known
		{"transformers/tokenization_utils_base.py:PreTrainedTokenizerBase.__call__", Tokenise, Tokenise, "transformers/tokenization_utils_base.py:PreTrainedTokenizerBase.__call__"},
		{"json/__init__.py:loads json/decoder.py:JSONDecoder.decode", Decode, Decode, "json/decoder.py:JSONDecoder.decode"},
		{"requests/sessions.py:Session.get socket.py:SocketIO.readinto", Read, Read, "socket.py:SocketIO.readinto"},
		{"train.py:join_features", Join, Join, "train.py:join_features"},
		{"albumentations/core/composition.py:Compose.__call__ albumentations/augmentations/transforms.py:GaussNoise.apply", Augment, Augment, "albumentations/augmentations/transforms.py:GaussNoise.apply"},
		{"", Other, Other, ""},
	} {
		var classes Classifier
		on, off, by := classes.Of(strings.Fields(fetchPath + c.path))
		if on != c.on || off != c.off || by != c.by {
			t.Errorf("%q: computing %s, waiting %s, by %q; want %s, %s, %q", c.path, on, off, by, c.on, c.off, c.by)
		}
	}
}

func TestTransformsAreClassedByTheirName(t *testing.T) {
	var classes Classifier
	for name, want := range map[string]Class{
		"torchvision/transforms/transforms:RandomHorizontalFlip":   Augment,
		"torchvision/transforms/transforms:ToTensor":               Transform,
		"torchvision/transforms/v2/_geometry:RandomResizedCrop":    Augment,
		"albumentations/augmentations/geometric/resize:Resize":     Transform,
		"albumentations/augmentations/transforms:RandomBrightness": Augment,
		"train:jitter": Augment,
		"train:Thing":  Other,
	} {
		if got := classes.OfTransform(name); got != want {
			t.Errorf("%s is %s, want %s", name, got, want)
		}
	}
}

func TestSharesAreThoseOfTheTime(t *testing.T) {
	var tree Tree
	tree.Add([]string{"train.py:get", "train.py:read"}, 1, 5, 0, 60)
	tree.Add([]string{"train.py:get", "train.py:decode"}, 3, 0, 0, 30)
	tree.Add([]string{"train.py:get"}, 0.5, 0, 0.5, 10)
	s, ok := Of(&tree)
	if !ok || s.Samples != 100 || len(s.Parts) != 3 {
		t.Fatalf("%+v, %v", s, ok)
	}
	for i, want := range []struct {
		class          Class
		share, on, off float64
		function       string
	}{{Read, 0.6, 0.1, 0.5, "train.py:read"}, {Decode, 0.3, 0.3, 0, "train.py:decode"}, {Other, 0.1, 0.05, 0, "train.py:get"}} {
		p := s.Parts[i]
		if p.Class != want.class || !near(p.Share.Value, want.share) || !near(p.On.Value, want.on) || !near(p.Off.Value, want.off) || p.Functions[0].Name != want.function {
			t.Errorf("part %d is %+v, want %+v", i, p, want)
		}
		if p.Share.Low >= p.Share.Value || p.Share.High <= p.Share.Value {
			t.Errorf("%s: no doubt in %+v", p.Class, p.Share)
		}
	}
	if !near(s.On, 4.5/9.5) {
		t.Errorf("%v of the time known is computing", s.On)
	}
}

func near(a, b float64) bool { return math.Abs(a-b) < 1e-12 }

func TestTooFewLooksSayNothing(t *testing.T) {
	var tree Tree
	tree.Add([]string{"train.py:read"}, 1, 0, 0, enough-1)
	if _, ok := Of(&tree); ok {
		t.Error("nine looks are a split")
	}
	if _, ok := Of(&Tree{}); ok {
		t.Error("no look is a split")
	}
}

// A function that is never seen in n looks may still take 3.8/n of the time (Wilson): an interval is never empty at zero.
func TestWilsonIsHonestAtTheEnds(t *testing.T) {
	if i := wilson(0, 100); i.Low != 0 || i.High < 0.03 || i.High > 0.04 {
		t.Errorf("%+v", i)
	}
	if i := wilson(1, 100); i.High != 1 || i.Low > 0.97 || i.Low < 0.96 {
		t.Errorf("%+v", i)
	}
	if i := wilson(0.5, 400); math.Abs(i.Half()-0.049) > 0.001 { // 1.96·√(0.25/400)
		t.Errorf("%+v", i)
	}
}

func TestTreesOfSeveralProcessesAddUp(t *testing.T) {
	var a, b Tree
	a.Add([]string{"f", "g"}, 1, 2, 0, 3)
	b.Add([]string{"f", "g"}, 10, 20, 0, 30)
	b.Add([]string{"f"}, 0, 0, 1, 1)
	b.Time("Resize", 2, 0.5)
	b.Processes, a.Processes = 1, 1
	a.Merge(&b)
	g := a.Root.Below[0].Below[0]
	if g.On != 11 || g.Off != 22 || g.Samples != 33 || a.Samples() != 34 || !near(a.Root.Total(), 34) || a.Processes != 2 || a.Transforms["Resize"] != (Timing{2, 0.5}) {
		t.Errorf("%+v of %+v", g, a)
	}
}

func TestATreeIsBounded(t *testing.T) {
	var tree Tree
	for i := range 3 * mostNodes {
		tree.Add([]string{"f", string(rune('!' + i%9000))}, 1, 0, 0, 1)
	}
	if tree.Nodes > mostNodes || tree.Samples() != 3*mostNodes || tree.Outside == 0 {
		t.Errorf("%d nodes, %d samples, %d outside", tree.Nodes, tree.Samples(), tree.Outside)
	}
}

func TestWordsOfANameAreToldApart(t *testing.T) {
	for name, want := range map[string]string{"read_bytes": "read bytes", "readBytes": "read bytes", "HTTPGet": "http get", "v2Crop": "v crop", "__getitem__": "getitem", "": ""} {
		if got := strings.Join(splitWords(name), " "); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
}

func FuzzAnyNameHasAClass(f *testing.F) {
	f.Add("train.py:Photos.__getitem__")
	f.Add("a:b:c.d*|`")
	f.Fuzz(func(t *testing.T, name string) {
		var classes Classifier
		on, off, _ := classes.Of([]string{name})
		if !slices.Contains(Classes, on) || !slices.Contains(Classes, off) || !slices.Contains(Classes, classes.OfTransform(name)) {
			t.Errorf("%q: %s, %s", name, on, off)
		}
	})
}
