package browser_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/chromedp/chromedp"

	"kontor/store/testenv"
)

// browser is the chromium that all tests share; each visitor has a separate profile in it.
var browser context.Context

func TestMain(m *testing.M) {
	os.Exit(run(m))
}

func run(m *testing.M) int {
	if !testenv.Runs(testenv.Full) {
		return testenv.Main(m, testenv.Full)
	}
	path, err := findChromium()
	if err != nil {
		fmt.Println("browser tests need chromium: apt-get install chromium-headless-shell")
		return 1
	}
	dir, err := os.MkdirTemp("", "kontor-browser")
	if err != nil {
		fmt.Println(err)
		return 1
	}
	defer os.RemoveAll(dir)
	if program = os.Getenv("KONTOR_TEST_BINARY"); program == "" {
		program = filepath.Join(dir, "kontor")
		if out, err := exec.Command("go", "build", "-o", program, "kontor").CombinedOutput(); err != nil {
			fmt.Printf("build: %v\n%s", err, out)
			return 1
		}
	}
	film := filepath.Join(dir, "camera.y4m")
	if err := writeFilm(film); err != nil {
		fmt.Println("video for the camera:", err)
		return 1
	}
	shared.dir = filepath.Join(dir, "data")
	defer func() {
		if shared.process != nil {
			_ = shared.process.stop() // no test depends on it any more
		}
	}()
	allocator, closeAllocator := chromedp.NewExecAllocator(context.Background(), chromedp.ExecPath(path), chromedp.NoSandbox, chromedp.Headless,
		chromedp.Flag("disable-gpu", true), chromedp.Flag("disable-quic", true), chromedp.Flag("disable-background-networking", true),
		chromedp.Flag("disable-component-update", true), chromedp.Flag("disable-sync", true), chromedp.Flag("no-first-run", true),
		chromedp.Flag("use-fake-ui-for-media-stream", true), chromedp.Flag("use-fake-device-for-media-stream", true),
		chromedp.Flag("use-file-for-fake-video-capture", film), chromedp.WSURLReadTimeout(testenv.Limit()))
	defer closeAllocator()
	var closeBrowser context.CancelFunc
	browser, closeBrowser = chromedp.NewContext(allocator)
	defer closeBrowser()
	if err := chromedp.Do(browser); err != nil {
		fmt.Println("start chromium:", err)
		return 1
	}
	return m.Run()
}

// findChromium returns the path of the chromium that has no windows and menus of its own, which takes less processor time, or of
// the whole one.
func findChromium() (string, error) {
	if path, err := exec.LookPath("chromium-headless-shell"); err == nil {
		return path, nil
	}
	return exec.LookPath("chromium")
}
