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
            labels = f'{{quantile="{float("0." + digits)}"}}'
        else:
            labels = ""
            kind, _, rest = name.partition("_")
            if kind in ("cnt", "sum"):
                name = f"{rest}_{'count' if kind == 'cnt' else kind}"
            elif kind in ("avg", "min", "max") and rest != "latency":
                continue  # of a summary: the provider has its sum and count
        # Some begin with a server's number, which the provider makes a label.
        if name[0].isalpha():
            yield f"{name}{labels} {value}"


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
