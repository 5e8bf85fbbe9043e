package arch

// module is this module's path; rules and messages leave it out.
const module = "github.com/datawait/datawait"

// rule says what a package may import. Names of packages are relative to the module; "x/..." is x and everything below.
type rule struct {
	packages string
	may      []string // packages of this module, also through others
	foreign  []string // packages of other modules, directly; nil = none
	std      []string // packages of the standard library, directly; nil = all
}

// What a pure package may use: nothing that reads a file, a clock or the network. A test looks for time.Now by itself.
var pure = []string{
	"bufio", "bytes", "cmp", "container/heap", "embed", "encoding/base64", "encoding/binary", "encoding/json", "errors", "fmt", "hash/fnv",
	"html", "html/template", "image", "image/color", "image/png", "io", "iter", "maps", "math", "math/bits", "math/cmplx", "math/rand/v2",
	"path", "reflect",
	"regexp", "slices", "sort", "strconv", "strings", "sync", "text/tabwriter", "text/template", "time", "unicode", "unicode/utf8",
}

var (
	leaves  = []string{"probe/recording", "probe/unit"}
	probing = append([]string{"probe/clock"}, leaves...)
	system  = []string{"golang.org/x/sys/..."}
)

// rules has one entry for every package. A package that no entry covers fails the test: whoever adds one says here what it
// may see. Data flows one way: probes observe, analysis thinks, report and exporters show, cmd wires.
var rules = []rule{
	{packages: "probe/unit", std: pure},
	{packages: "probe/recording", may: []string{"probe/unit"}, foreign: system},
	{packages: "probe/clock", foreign: system},
	{packages: "probe/hook", foreign: system},

	{packages: "probe/spool", may: probing, foreign: system},
	{packages: "probe/host", may: probing, foreign: system},
	{packages: "probe/sampler", may: probing, foreign: system},
	{packages: "probe/alloc", may: probing, foreign: append([]string{"google.golang.org/grpc/...", "k8s.io/kubelet/..."}, system...)},
	{packages: "probe/promapi", may: probing, foreign: []string{"github.com/prometheus/..."}},
	{packages: "probe/gpu", may: probing},
	{packages: "probe/gpu/child", may: append([]string{"probe/gpu/..."}, probing...), foreign: system},
	{packages: "probe/gpu/emulated", may: append([]string{"probe/gpu"}, probing...), foreign: system},
	{packages: "probe/gpu/scrape", may: append([]string{"probe/gpu"}, probing...), foreign: []string{"github.com/prometheus/..."}},
	{packages: "probe/gpu/served", may: append([]string{"probe/gpu"}, probing...), foreign: system},
	{packages: "probe/gpu/standin", may: append([]string{"probe/gpu"}, probing...)},
	{packages: "probe/gpu/dcgm", may: append([]string{"probe/gpu"}, probing...), foreign: []string{"github.com/NVIDIA/go-dcgm/...", "github.com/NVIDIA/go-nvml/pkg/dl"}},
	{packages: "probe/gpu/nvml", may: append([]string{"probe/gpu"}, probing...), foreign: []string{"github.com/NVIDIA/go-nvml/..."}},

	{packages: "analysis/...", may: append([]string{"analysis/..."}, leaves...), std: pure},

	{packages: "report/...", may: append([]string{"report/...", "analysis/..."}, leaves...), std: pure,
		foreign: []string{"gonum.org/v1/plot/...", "golang.org/x/image/...", "golang.org/x/text/...", "github.com/santhosh-tekuri/jsonschema/v6/..."}},
	{packages: "exporters/...", may: append([]string{"exporters/...", "analysis/..."}, leaves...),
		foreign: []string{"github.com/prometheus/...", "github.com/klauspost/compress/..."}},

	{packages: "examples/..."},
	{packages: "cmd/...", may: []string{"..."}, foreign: []string{"..."}},
}

// nvidia are the bindings that only two packages may touch: their libraries crash, hang and leak.
var nvidia = map[string][]string{
	"github.com/NVIDIA/go-dcgm/...":          {"probe/gpu/dcgm"},
	"github.com/NVIDIA/go-nvml/pkg/nvml/...": {"probe/gpu/nvml"},
	"github.com/NVIDIA/go-nvml/pkg/dl":       {"probe/gpu/dcgm", "probe/gpu/nvml"}, // looks up what a library has before a binding calls it
}
