#!/usr/bin/env python3
"""ZooKeeper's metrics for Prometheus, for Debian's package, which lacks the provider: `mntr` in the provider's names.

Serves http://:7000/metrics. A server that does not serve clients has no metrics, as with the provider.
"""
import http.server
import re
import socket

LINE = re.compile(r"^zk_(\w+)\t(-?[0-9.]+(?:E-?[0-9]+)?)$")
QUANTILE = re.compile(r"^p(50|95|99|999)_(\w+)$")


def mntr():
    with socket.create_connection(("127.0.0.1", 2181), timeout=3) as connection:
        connection.sendall(b"mntr")
        answer = b""
        while chunk := connection.recv(65536):
            answer += chunk
    return answer.decode()


def convert(text):
    for line in text.splitlines():
        if not (found := LINE.match(line)):
            continue
        name, value = found.groups()
        if quantile := QUANTILE.match(name):
            digits, name = quantile.groups()
            yield f'{name}{{quantile="0.{digits}"}} {value}'
        elif name.startswith("cnt_"):
            yield f"{name[4:]}_count {value}"
        else:
            yield f"{name} {value}"


class Metrics(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        try:
            body, status = "\n".join([*convert(mntr()), ""]).encode(), 200
        except OSError as error:
            body, status = f"{error}\n".encode(), 503
        self.send_response(status)
        self.send_header("Content-Type", "text/plain; version=0.0.4")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


http.server.ThreadingHTTPServer(("", 7000), Metrics).serve_forever()
