package objectstore

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/jpeg"
	"image/png"
	"math/rand/v2"
	"sync"
)

var errNoObject = errors.New("no such object")

// Catalog is a retailer's data: for every product a photo (`photos/000123.png` or `.jpg`) and a record of features
// (`features/000123.json`). Objects are made when first asked for, the same ones each time, and kept.
type Catalog struct {
	Products int
	Pixels   int // edge of a photo
	Features int // numbers in a record

	mu   sync.RWMutex
	made map[string][]byte
}

// NewCatalog returns a catalogue of square photos.
func NewCatalog(products, pixels, features int) *Catalog {
	return &Catalog{Products: products, Pixels: pixels, Features: features, made: map[string][]byte{}}
}

// Object returns the object of a key.
func (c *Catalog) Object(key string) ([]byte, error) {
	c.mu.RLock()
	body, found := c.made[key]
	c.mu.RUnlock()
	if found {
		return body, nil
	}
	body, err := c.make(key)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	c.made[key] = body
	c.mu.Unlock()
	return body, nil
}

// Prepare makes every object of one photo format ahead of time, so that serving costs no CPU beyond copying.
func (c *Catalog) Prepare(suffix string) error {
	for n := range c.Products {
		for _, key := range []string{fmt.Sprintf("photos/%06d.%s", n, suffix), fmt.Sprintf("features/%06d.json", n)} {
			if _, err := c.Object(key); err != nil {
				return err
			}
		}
	}
	return nil
}

func (c *Catalog) make(key string) ([]byte, error) {
	var n int
	var suffix string
	if _, err := fmt.Sscanf(key, "photos/%06d.%3s", &n, &suffix); err == nil && c.has(n) {
		return encode(c.photo(n), suffix, key)
	}
	if _, err := fmt.Sscanf(key, "features/%06d.json", &n); err == nil && c.has(n) {
		return json.Marshal(c.record(n))
	}
	return nil, fmt.Errorf("%w: %q", errNoObject, key)
}

func (c *Catalog) has(n int) bool { return n >= 0 && n < c.Products }

func encode(photo image.Image, suffix, key string) ([]byte, error) {
	var b bytes.Buffer
	switch suffix {
	case "png":
		encoder := png.Encoder{CompressionLevel: png.BestSpeed}
		if err := encoder.Encode(&b, photo); err != nil {
			return nil, err
		}
	case "jpg":
		if err := jpeg.Encode(&b, photo, &jpeg.Options{Quality: 90}); err != nil {
			return nil, err
		}
	default:
		return nil, fmt.Errorf("%w: %q", errNoObject, key)
	}
	return b.Bytes(), nil
}

// photo draws product n: a gradient, a shape and grain, so that it compresses as a photo does. It is opaque, hence 8-bit RGB.
func (c *Catalog) photo(n int) image.Image {
	rng := rand.New(rand.NewPCG(uint64(n), 1))
	photo := image.NewRGBA(image.Rect(0, 0, c.Pixels, c.Pixels))
	base := [3]int{rng.IntN(200), rng.IntN(200), rng.IntN(200)}
	cx, cy, radius := rng.IntN(c.Pixels), rng.IntN(c.Pixels), 4+rng.IntN(c.Pixels/2)
	for y := range c.Pixels {
		for x := range c.Pixels {
			lift := (x + y) * 40 / c.Pixels
			if (x-cx)*(x-cx)+(y-cy)*(y-cy) < radius*radius {
				lift = 15
			}
			grain := rng.IntN(12)
			photo.SetRGBA(x, y, color.RGBA{uint8(base[0] + lift + grain), uint8(base[1] + lift), uint8(base[2] + grain), 255})
		}
	}
	return photo
}

type record struct {
	SKU      string    `json:"sku"`
	Label    int       `json:"label"`
	Features []float32 `json:"features"`
}

func (c *Catalog) record(n int) record {
	rng := rand.New(rand.NewPCG(uint64(n), 2))
	r := record{SKU: fmt.Sprintf("SKU-%06d", n), Label: rng.IntN(8), Features: make([]float32, c.Features)}
	for i := range r.Features {
		r.Features[i] = rng.Float32()
	}
	return r
}
