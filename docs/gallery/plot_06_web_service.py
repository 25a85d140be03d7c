"""
A saved model behind a small web service
========================================

Fit once, save, and answer requests from the file. Loading executes nothing that is in the file, and the answers have
the bits of the model that was saved.
"""

import json
import tempfile
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from urllib.request import Request, urlopen

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

import manifast
from manifast.plotting import plot_embedding

X, y = load_digits(return_X_y=True)
path = Path(tempfile.mkdtemp()) / "digits.manifast"
fitted = manifast.LFDA(2).fit(X[:1000], y[:1000])
manifast.save(fitted, path)
print(f"{path.stat().st_size / 1024:.0f} kB")

# %%
# The service knows nothing but the file.

model = manifast.load(path)


class Answers(BaseHTTPRequestHandler):
    def do_POST(self):
        rows = np.array(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
        try:
            status, answer = 200, model.transform(rows).tolist()
        except ValueError as problem:  # the message names what is wrong with the rows
            status, answer = 400, str(problem)
        self.send_response(status)
        self.end_headers()
        self.wfile.write(json.dumps(answer).encode())

    def log_message(self, *_):
        pass


server = HTTPServer(("127.0.0.1", 0), Answers)
threading.Thread(target=server.serve_forever, daemon=True).start()

# %%
# A client asks for 200 digits, one request each.


def ask(rows):
    request = Request(f"http://127.0.0.1:{server.server_port}", json.dumps(rows.tolist()).encode(), method="POST")
    with urlopen(request) as answer:
        return np.array(json.load(answer))


placed = np.vstack([ask(X[i : i + 1]) for i in range(1000, 1200)])
server.shutdown()
server.server_close()
print("the bits of the model that was saved:", np.array_equal(placed, fitted.transform(X[1000:1200])))

figure, ax = plt.subplots(figsize=(6.5, 4.8), layout="constrained")
plot_embedding(fitted, y[:1000], Y_new=placed, labels_new=y[1000:1200], names="inside", ax=ax)
