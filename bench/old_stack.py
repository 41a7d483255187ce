#!/usr/bin/env python3
"""An old stack before a receiver: TPDUs written one by one, little in flight, Nagle's algorithm on.

    old_stack.py PORT TO    listens on 127.0.0.1:PORT and connects to 127.0.0.1:TO, until it is interrupted
"""

import socket
import sys
import threading


def pump(source, sink, is_old):
    """Carries octets to the end of the stream; an old stack writes each TPKT by itself."""
    rest = b""
    try:
        while octets := source.recv(65536):
            if not is_old:
                sink.sendall(octets)
                continue
            rest += octets
            while len(rest) >= 4 and len(rest) >= (length := int.from_bytes(rest[2:4], "big")) > 0:
                sink.sendall(rest[:length])
                rest = rest[length:]
    except OSError:
        pass
    for end in (source, sink):
        try:
            end.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass


def main():
    port, to = int(sys.argv[1]), int(sys.argv[2])
    listener = socket.create_server(("127.0.0.1", port))
    while True:
        caller, _ = listener.accept()
        called = socket.socket()
        called.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 16384)
        called.connect(("127.0.0.1", to))
        caller.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for arguments in ((caller, called, True), (called, caller, False)):
            threading.Thread(target=pump, args=arguments, daemon=True).start()


if __name__ == "__main__":
    main()
