"""Serves an index to this machine alone, as a static host would, for as long as a check takes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from shutil import copyfileobj
from threading import Thread
from typing import Final
from urllib.parse import unquote, urlsplit

from argosy.packaging.pages import HTML, JSON

__all__ = ["serve"]

_JSON_TYPE: Final = "application/vnd.pypi.simple.v1+json"


@contextmanager
def serve(pages: Mapping[str, bytes], wheels: Mapping[str, Path], *, with_json: bool) -> Iterator[str]:
    """Serve pages and wheels, both by path, on a free port of 127.0.0.1; the context is the address.

    `with_json`: a client that asks for JSON gets it, which static hosts do not do.
    """

    class Handler(BaseHTTPRequestHandler):
        """Answers for the pages and wheels of this context."""

        def do_GET(self) -> None:
            path = unquote(urlsplit(self.path).path).lstrip("/")
            if path in wheels:
                self._begin("application/octet-stream", wheels[path].stat().st_size)
                with wheels[path].open("rb") as file:
                    copyfileobj(file, self.wfile)
                return
            as_json = with_json and _JSON_TYPE in self.headers.get("Accept", "")
            page = pages.get(f"{path}{JSON if as_json else HTML}") if path.endswith("/") else pages.get(path)
            if page is None:
                self.send_error(HTTPStatus.NOT_FOUND)
                return
            self._begin(_JSON_TYPE if as_json else "text/html; charset=utf-8", len(page))
            self.wfile.write(page)

        def _begin(self, kind: str, size: int) -> None:
            self.send_response(HTTPStatus.OK)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(size))
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Say nothing: what matters is what pip says."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = Thread(target=server.serve_forever, name="argosy-index", daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}"
        finally:
            server.shutdown()
            thread.join()
