"""A site over TLS, the same as the tests' own: prints its port. Argument: a file with key and certificate."""

import http.server
import ssl
import sys

PAGE = (
    "<!doctype html><title>fifty</title>"
    + "".join(f"<img src=/{number}.svg>" for number in range(50))
    + "<p id=told></p><script>onload = () => { told.textContent = 'loaded ' +"
    " [...document.images].filter(image => image.naturalWidth > 0).length + ' of 50' }</script>"
)
SVG = '<svg xmlns="http://www.w3.org/2000/svg" width="8" height="8"></svg>'


class Site(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        body, kind = (SVG, "image/svg+xml") if self.path.endswith(".svg") else (PAGE, "text/html")
        self.send_response(200)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body.encode())

    def log_message(self, *_):
        pass


context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(sys.argv[1])
server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Site)
server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
print(server.server_address[1], flush=True)
server.serve_forever()
