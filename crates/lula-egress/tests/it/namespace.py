"""Runs inside a network namespace in which every address is local, and hands sockets of it out.

Reads lines on the socket that is its standard input: `listen ADDRESS PORT`, `udp ADDRESS PORT`,
`dial ADDRESS PORT`, `datagram ADDRESS PORT`, `stream ADDRESS 0` (not connected). Answers `ok` with a descriptor, or what went wrong.
"""
import os
import resource
import socket
import subprocess
import sys

resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
control = socket.socket(fileno=0)
for command in (
    ["ip", "link", "set", "lo", "up"],
    ["ip", "route", "add", "local", "0.0.0.0/0", "dev", "lo"],
    ["ip", "-6", "route", "add", "local", "::/0", "dev", "lo"],
    ["mount", "--bind", sys.argv[1], "/etc/resolv.conf"],
):
    subprocess.run(command, check=True, stdin=subprocess.DEVNULL)
control.sendall(b"ready\n")


def made(what, address, port):
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    kind = socket.SOCK_DGRAM if what in ("udp", "datagram") else socket.SOCK_STREAM
    one = socket.socket(family, kind)
    one.settimeout(5)
    if what in ("listen", "udp"):
        one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            one.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        one.bind((address, port))
        if what == "listen":
            one.listen(1024)
    elif what == "stream":
        one.settimeout(0)
        return one
    else:
        one.connect((address, port))
    one.settimeout(None)
    return one


for line in os.fdopen(os.dup(0), "rb", buffering=0):
    what, address, port = line.decode().split()
    try:
        one = made(what, address, int(port))
    except OSError as error:
        control.sendall(f"{error}\n".encode())
        continue
    with one:
        socket.send_fds(control, [b"ok\n"], [one.fileno()])
