package objectstore

import (
	"bytes"
	"fmt"
	"image/png"
	"io"
	"net/http"
	"testing"
	"time"
)

func get(t *testing.T, url string) (int, []byte) {
	t.Helper()
	response, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, body
}

func serve(t *testing.T, latency Latency) *Store {
	t.Helper()
	store, err := Serve(NewCatalog(3, 16, 4), latency)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close() })
	return store
}

func TestServesTheCatalogue(t *testing.T) {
	store := serve(t, Latency{})
	status, photo := get(t, store.URL()+"/photos/000002.png")
	if status != http.StatusOK {
		t.Fatalf("photo: status %d", status)
	}
	picture, err := png.Decode(bytes.NewReader(photo))
	if err != nil || picture.Bounds().Dx() != 16 {
		t.Fatalf("photo: %v, %v", picture, err)
	}
	for _, missing := range []string{"photos/000003.png", "photos/-00001.png", "photos/000001.gif", "features/9.json", ""} {
		if status, _ := get(t, store.URL()+"/"+missing); status != http.StatusNotFound {
			t.Errorf("GET %q: status %d, want 404", missing, status)
		}
	}
	if got := store.Requests(); got != 6 {
		t.Errorf("%d requests counted, want 6", got)
	}
	if got := store.Bytes(); got != int64(len(photo)) {
		t.Errorf("%d bytes counted, want %d", got, len(photo))
	}
}

func TestKeepsWhatIsPut(t *testing.T) {
	store := serve(t, Latency{})
	request, err := http.NewRequest(http.MethodPut, store.URL()+"/shards/00000.bin", bytes.NewReader([]byte("packed")))
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	response.Body.Close()
	if _, body := get(t, store.URL()+"/shards/00000.bin"); string(body) != "packed" {
		t.Errorf("got %q back", body)
	}
}

func TestObjectsAreTheSameEachTime(t *testing.T) {
	for _, key := range []string{"photos/000001.png", "photos/000001.jpg", "features/000001.json"} {
		a, errA := NewCatalog(3, 16, 4).Object(key)
		b, errB := NewCatalog(3, 16, 4).Object(key)
		if errA != nil || errB != nil || !bytes.Equal(a, b) || len(a) == 0 {
			t.Errorf("%s: %d and %d bytes, %v, %v", key, len(a), len(b), errA, errB)
		}
	}
}

func TestLatencyIsWaitedFor(t *testing.T) {
	store := serve(t, Latency{Median: 20 * time.Millisecond})
	start := time.Now()
	for n := range 3 {
		get(t, fmt.Sprintf("%s/features/%06d.json", store.URL(), n))
	}
	if took := time.Since(start); took < 60*time.Millisecond {
		t.Errorf("three answers of 20 ms came in %v", took)
	}
}
