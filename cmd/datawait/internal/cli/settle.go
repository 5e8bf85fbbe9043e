package cli

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"go.yaml.in/yaml/v3"
)

// mostConfig bounds a file of flags, in bytes.
const mostConfig = 1 << 20

// settle gives flags that were not given on the command line what the environment says, else a file. The file is named by --config, which
// may itself come from the environment.
func settle(cmd *cobra.Command, config string) error {
	prefix := "DATAWAIT_" + strings.ToUpper(cmd.Name()) + "_"
	var failed []error
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		name := prefix + strings.ToUpper(strings.ReplaceAll(f.Name, "-", "_"))
		if value, ok := os.LookupEnv(name); ok && !f.Changed && f.Name != "help" {
			if err := cmd.Flags().Set(f.Name, value); err != nil {
				failed = append(failed, fmt.Errorf("%s: %w", name, err))
			}
			if f.Name == "config" {
				config = value
			}
		}
	})
	if err := errors.Join(failed...); err != nil {
		return usage("`"+cmd.CommandPath()+" --help` lists the flags", "%w", err)
	}
	if config == "" {
		return nil
	}
	values, err := readConfig(config)
	if err != nil {
		return usage("it is YAML, one flag a line: listen: 127.0.0.1:9977", "--config: %w", err)
	}
	for name, value := range values {
		f := cmd.Flags().Lookup(name)
		if f == nil || name == "config" || name == "help" {
			return usage("`"+cmd.CommandPath()+" --help` lists the flags", "--config: %s has %q, which is no flag of %s", config, name, cmd.Name())
		}
		if f.Changed {
			continue
		}
		if err := cmd.Flags().Set(name, value); err != nil {
			return usage("`"+cmd.CommandPath()+" --help` lists the flags", "--config: %s has a bad %s: %w", config, name, err)
		}
	}
	return nil
}

// readConfig reads names and values; what is written as a number or a yes is taken as it is written.
func readConfig(path string) (map[string]string, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, mostConfig))
	if err != nil {
		return nil, err
	}
	var nodes map[string]yaml.Node
	if err := yaml.Unmarshal(b, &nodes); err != nil {
		return nil, fmt.Errorf("reading %s: %w", path, err)
	}
	values := map[string]string{}
	for name, n := range nodes {
		if n.Kind != yaml.ScalarNode {
			return nil, fmt.Errorf("reading %s: %s has no plain value", path, name)
		}
		values[name] = n.Value
	}
	return values, nil
}
