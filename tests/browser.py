"""A headless Chromium that tests drive by its DevTools protocol, over two pipes. A NUL ends each JSON message."""

from __future__ import annotations

import base64
import io
import itertools
import json
import os
import shutil
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

_SECONDS = 60  # the longest time that `wait` waits, since the machine may be busy
_FLAGS = ("--headless", "--no-sandbox", "--disable-gpu", "--enable-unsafe-swiftshader", "--window-size=1600,1000")


class Browser:
    """One page. The test is skipped if there is no browser. The browser writes its files to the folder `profile`."""

    def __init__(self, profile: Path) -> None:
        browser = shutil.which("chromium") or shutil.which("google-chrome")
        if browser is None:
            pytest.skip("no chromium")
        commands, self._commands = os.pipe()
        answers_end, answers = os.pipe()
        command = [browser, *_FLAGS, f"--user-data-dir={profile}", "--remote-debugging-pipe"]
        self._process = subprocess.Popen(  # the browser reads from 3 and writes to 4
            ["bash", "-c", f'exec "$@" 3<&{commands} 4>&{answers}', "bash", *command],
            pass_fds=(commands, answers),
            stderr=subprocess.DEVNULL,
        )
        os.close(commands)
        os.close(answers)
        self._answers, self._rest, self._numbers = answers_end, b"", itertools.count()
        target = self._call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self._call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]

    def __enter__(self) -> Browser:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait()
        os.close(self._commands)
        os.close(self._answers)

    def open(self, url: str) -> None:
        """Opens a page and waits until it is loaded. Its scripts may still be at work then."""
        self._page("Page.navigate", url=url)
        self.wait("document.readyState == 'complete'")

    def run(self, script: str) -> Any:
        """Returns the value of a JavaScript expression, converted through JSON."""
        result = self._page("Runtime.evaluate", expression=script, returnByValue=True)
        assert "exceptionDetails" not in result, result["exceptionDetails"]
        return result["result"].get("value")

    def wait(self, script: str) -> None:
        """Waits until a JavaScript expression is true."""
        deadline = time.monotonic() + _SECONDS
        while not self.run(script):
            assert time.monotonic() < deadline, f"not true within {_SECONDS} s: {script}\n{self.text()}"
            time.sleep(0.1)

    def settle(self) -> None:
        """Waits until nothing on the page moves."""
        before, now = b"", self.screenshot()
        while now != before:
            time.sleep(0.5)
            before, now = now, self.screenshot()

    def click(self, rectangle: str) -> None:
        """Clicks into the middle of a rectangle: a JavaScript expression whose value is a DOMRect."""
        middle = f"(r => [r.x + r.width / 2, r.y + r.height / 2])({rectangle})"
        where = dict(zip("xy", self.run(middle), strict=True))
        self._page("Input.dispatchMouseEvent", type="mouseMoved", **where)
        for what in ("mousePressed", "mouseReleased"):
            self._page("Input.dispatchMouseEvent", type=what, button="left", clickCount=1, **where)

    def text(self) -> str:
        """The text of the page that a reader sees."""
        return self.run("document.body.innerText")

    def resize(self, width: int, height: int) -> None:
        """Shows the page as on a telephone whose screen has this size in CSS pixels."""
        self._page("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=True)

    def prefer(self, colors: str) -> None:
        """Shows the page to a reader who prefers "light" or "dark" colors."""
        self._page("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": colors}])

    def screenshot(self) -> bytes:
        """A PNG of the visible part of the page."""
        return base64.b64decode(self._page("Page.captureScreenshot")["data"])

    def keep(self, name: str) -> None:
        """Writes a picture of the page for the documentation to the folder `PICTURES`, if this variable is set.

        The picture has 64 colours, which is enough for a page and takes a fraction of the bytes.
        """
        if folder := os.environ.get("PICTURES"):
            picture = Image.open(io.BytesIO(self.screenshot())).convert("RGB").quantize(64)
            picture.save(Path(folder) / f"{name}.png", optimize=True)

    def _page(self, method: str, **parameters: Any) -> dict[str, Any]:
        return self._call(method, self._session, **parameters)

    def _call(self, method: str, session: str | None = None, **parameters: Any) -> dict[str, Any]:
        number = next(self._numbers)
        message = {"id": number, "method": method, "params": parameters} | ({"sessionId": session} if session else {})
        os.write(self._commands, json.dumps(message).encode() + b"\0")
        while (answer := self._message()).get("id") != number:
            pass  # events
        assert "result" in answer, answer
        return answer["result"]

    def _message(self) -> dict[str, Any]:
        while b"\0" not in self._rest:
            more = os.read(self._answers, 1 << 20)
            assert more, f"the browser ended: {self._process.wait()}"
            self._rest += more
        message, _, self._rest = self._rest.partition(b"\0")
        return json.loads(message)
