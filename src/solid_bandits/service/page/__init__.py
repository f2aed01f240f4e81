"""The page at `/`: a few files, served unchanged. It sends requests to this host only, and evaluates no text."""

from importlib.resources import files

MEDIA = {
    "index.html": "text/html; charset=utf-8",
    "page.css": "text/css; charset=utf-8",
    "page.js": "text/javascript; charset=utf-8",
    "charts.js": "text/javascript; charset=utf-8",
    "words.js": "text/javascript; charset=utf-8",
    "icon.svg": "image/svg+xml",
}
FILES: dict[str, tuple[str, bytes]] = {
    name: (media, files(__package__).joinpath(name).read_bytes()) for name, media in MEDIA.items()
}
"""Name -> media type and content; `index.html` is the page, the others are below `/page/`."""
HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-cache",
}
