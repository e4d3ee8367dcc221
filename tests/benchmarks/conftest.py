"""Headless Chromium for tests of pages, driven over chromedriver's own HTTP, so that no client has to be installed."""

from __future__ import annotations

import base64
import json
import shutil
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

_FLAGS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
    "--hide-scrollbars",
)


class Browser:
    """One page at a time, at any width."""

    def __init__(self, driver: str, chromium: str, profile: Path) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self._port = free.getsockname()[1]
        self._process = subprocess.Popen(
            [driver, f"--port={self._port}"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        self._wait()
        options = {"binary": chromium, "args": [*_FLAGS, f"--user-data-dir={profile}"]}
        wanted = {
            "browserName": "chrome",
            "goog:chromeOptions": options,
            "goog:loggingPrefs": {"browser": "ALL"},
        }
        try:
            self._session = self._call("POST", "/session", {"capabilities": {"alwaysMatch": wanted}})["sessionId"]
        except BaseException:
            self._process.kill()
            raise

    def open(self, page: Path, width: int, height: int = 900, dark: bool = False) -> None:
        """Load ``page`` in a window of ``width`` CSS pixels; headless windows alone stop at 500."""
        metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}
        self.cdp("Emulation.setDeviceMetricsOverride", metrics)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.cdp("Emulation.setEmulatedMedia", {"features": [scheme]})
        self._of_session("POST", "/url", {"url": page.resolve().as_uri()})

    def js(self, expression: str) -> Any:
        """Return the value of a JavaScript expression."""
        return self._of_session("POST", "/execute/sync", {"script": f"return {expression}", "args": []})

    def console(self) -> list[str]:
        """Return what the console said since it was last asked, warnings and errors alone."""
        said = self._of_session("POST", "/se/log", {"type": "browser"})
        return [entry["message"] for entry in said if entry["level"] in ("WARNING", "SEVERE")]

    def cdp(self, command: str, parameters: dict[str, Any]) -> Any:
        """Send a command of the DevTools protocol."""
        return self._of_session("POST", "/goog/cdp/execute", {"cmd": command, "params": parameters})

    def screenshot(self, path: Path, whole: bool = True) -> None:
        """Write a PNG of the page."""
        picture = self.cdp("Page.captureScreenshot", {"format": "png", "captureBeyondViewport": whole})
        path.write_bytes(base64.b64decode(picture["data"]))

    def close(self) -> None:
        """End the browser."""
        try:
            self._of_session("DELETE", "", None)
        finally:
            self._process.terminate()
            self._process.wait(20)

    def _wait(self) -> None:
        for _ in range(100):
            try:
                if self._call("GET", "/status")["ready"]:
                    return
            except urllib.error.URLError:
                time.sleep(0.1)
        self._process.kill()
        raise RuntimeError("chromedriver did not start within 10 seconds")

    def _of_session(self, method: str, path: str, body: Any) -> Any:
        return self._call(method, f"/session/{self._session}{path}", body)

    def _call(self, method: str, path: str, body: Any = None) -> Any:
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(
            f"http://127.0.0.1:{self._port}{path}",
            data,
            {"Content-Type": "application/json"},
            method=method,
        )
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))  # never through a proxy
        try:
            with opener.open(request, timeout=60) as answer:
                return json.load(answer)["value"]
        except urllib.error.HTTPError as error:
            raise RuntimeError(f"chromedriver refused {path}: {error.read().decode()[:500]}") from error


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    driver = shutil.which("chromedriver")
    if chromium is None or driver is None:
        pytest.skip("needs chromium and chromedriver (Debian: apt-get install chromium chromium-driver)")
    running = Browser(driver, chromium, tmp_path_factory.mktemp("chromium"))
    yield running
    running.close()
