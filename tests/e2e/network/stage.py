"""A small internet in a network namespace of its own, and a command that is run in the middle of it.

Usage: stage.py DIRECTORY COMMAND [ARGUMENT...]

Must be root of a new network and mount namespace (`unshare --net --mount`). Names lead to addresses that
are local here and public elsewhere; nothing leaves this namespace. What the servers hear is written to
DIRECTORY/heard, a line each.
"""
import ctypes, fcntl, http.server, os, socket, ssl, struct, subprocess, sys, threading, time

PUBLIC = "93.184.216.34"
NAMES = {
    "pkg.example.org": PUBLIC,
    "api.example.org": PUBLIC,
    "other.example.org": PUBLIC,
    "cdn.example.org": PUBLIC,
    "intranet.example.org": "10.1.2.3",
    "metadata.example.org": "169.254.169.254",
    "rebound.example.org": "127.0.0.1",
}

directory, command = sys.argv[1], sys.argv[2:]
libc = ctypes.CDLL(None, use_errno=True)


def raise_loopback(addresses):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        fcntl.ioctl(s, 0x8914, struct.pack("16sh14x", b"lo", 0x41))
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0) as n:
        for address in addresses:
            packed = socket.inet_aton(address)
            body = struct.pack("BBBBI", 2, 32, 0, 0, 1) + struct.pack("HH", 8, 2) + packed
            n.send(struct.pack("IHHII", 16 + len(body), 20, 1 | 4 | 0x400, 1, 0) + body)
            error = struct.unpack("i", n.recv(4096)[16:20])[0]
            assert error in (0, -17), error


def mount_hosts():
    path = os.path.join(directory, "hosts")
    with open(path, "w") as file:
        file.write("127.0.0.1 localhost\n")
        file.writelines(f"{address} {name}\n" for name, address in NAMES.items())
    assert libc.mount(None, b"/", None, 0x4000 | 0x40000, None) == 0, os.strerror(ctypes.get_errno())
    done = libc.mount(path.encode(), b"/etc/hosts", None, 0x1000, None)
    assert done == 0, os.strerror(ctypes.get_errno())
    # Names that are not in the file have no answer.
    path = os.path.join(directory, "resolv.conf")
    with open(path, "w") as file:
        file.write("nameserver 127.0.0.1\noptions timeout:1 attempts:1\n")
    libc.mount(path.encode(), os.path.realpath("/etc/resolv.conf").encode(), None, 0x1000, None)


def heard(line):
    with open(os.path.join(directory, "heard"), "a") as file:
        file.write(line + "\n")


class Answers(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def answer(self):
        length = int(self.headers.get("Content-Length") or 0)
        body = self.rfile.read(length).decode(errors="replace")
        token = self.headers.get("Authorization", "-")
        heard(f"{self.command} {self.headers.get('Host')} {self.path} {token} {body}")
        text, status = f"{self.command} {self.path} says {self.headers.get('Host')}\n", 200
        if self.path == "/echo":
            text = f"you sent {token}\n"
        if self.path == "/redirect":
            status = 302
        path = self.path.partition("?")[0].lstrip("/")
        served = os.path.join(directory, "served", path + ("index.html" if path.endswith("/") else ""))
        data = text.encode()
        if os.path.isfile(served):
            data = open(served, "rb").read()
        elif ".git/" in path or path.startswith("debian/"):
            status = 404
        self.send_response(status)
        if status == 302:
            self.send_header("Location", "https://other.example.org/landed")
        self.send_header("Content-Type", "text/html" if self.path.endswith("/") else "application/octet-stream")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    do_GET = do_POST = do_PUT = do_HEAD = answer

    def log_message(self, *arguments):
        pass


def serve(port, tls):
    server = http.server.ThreadingHTTPServer(("0.0.0.0", port), Answers)
    server.daemon_threads = True
    if tls:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(os.path.join(directory, "leaf.pem"), os.path.join(directory, "leaf.key"))
        server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    threading.Thread(target=server.serve_forever, daemon=True).start()


def shout(port):
    """Whoever connects, or sends a datagram, is heard."""
    stream = socket.create_server(("0.0.0.0", port), backlog=64)
    packets = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    packets.bind(("0.0.0.0", port))

    def connections():
        while True:
            connection, _ = stream.accept()
            heard(f"tcp {port}")
            connection.sendall(b"raw hello\n")
            connection.close()

    def datagrams():
        while True:
            data, _ = packets.recvfrom(2000)
            heard(f"udp {port} {data[:80]!r}")

    for each in (connections, datagrams):
        threading.Thread(target=each, daemon=True).start()


def certificates():
    def openssl(*arguments):
        subprocess.run(["openssl", *arguments], cwd=directory, check=True, capture_output=True)

    key = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes")
    openssl("req", "-x509", *key, "-keyout", "root.key", "-out", "root.pem", "-subj", "/CN=Stage Root", "-days", "2",
            "-addext", "basicConstraints=critical,CA:TRUE", "-addext", "keyUsage=critical,keyCertSign")
    openssl("req", *key, "-keyout", "leaf.key", "-out", "leaf.csr", "-subj", "/CN=stage")
    names = ",".join(f"DNS:{name}" for name in NAMES)
    with open(os.path.join(directory, "leaf.ext"), "w") as file:
        file.write(f"subjectAltName={names}\nbasicConstraints=CA:FALSE\nextendedKeyUsage=serverAuth\n")
    openssl("x509", "-req", "-in", "leaf.csr", "-CA", "root.pem", "-CAkey", "root.key", "-out", "leaf.pem",
            "-days", "2", "-extfile", "leaf.ext", "-set_serial", "7")


certificates()
raise_loopback([PUBLIC, "10.1.2.3", "169.254.169.254", "198.51.100.7"])
mount_hosts()
open(os.path.join(directory, "heard"), "w").close()
serve(443, True)
serve(80, False)
serve(8443, True)
for port in (22, 53, 853, 5432):
    shout(port)
ended = subprocess.run(command, env={**os.environ, "SSL_CERT_FILE": os.path.join(directory, "root.pem")})
# Something that was let go may still be on its way.
time.sleep(float(os.environ.get("LINGER", "0")))
sys.stdout.flush()
os._exit(ended.returncode if ended.returncode >= 0 else 128 - ended.returncode)
