"""Tries the installed package without a message store: its types, and its errors as classes."""

import socket
from typing import Callable

import xuxa


def raises(kind: type[BaseException], call: Callable[[], object]) -> BaseException:
    try:
        call()
    except kind as error:
        assert type(error).__module__ == "xuxa.errors", type(error)
        assert str(error), "an error has a text"
        return error
    raise AssertionError(f"no {kind.__name__}")


def main() -> None:
    # Bound and closed: nobody listens there.
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        store = "127.0.0.1:%d" % free.getsockname()[1]
    user = "/C=XX/ADMD=A/PRMD=B/S=C"
    error = raises(xuxa.NotConnected, lambda: xuxa.Mailbox(store, user=user, password="x"))
    assert isinstance(error, xuxa.Error) and isinstance(error, ConnectionError)
    error = raises(xuxa.InvalidAddress, lambda: xuxa.Mailbox(store, user="nobody", password="x"))
    assert isinstance(error, ValueError)
    raises(xuxa.InvalidValue, lambda: xuxa.Mailbox(store, user=user, password="x", answer_timeout=-1))
    with socket.create_server(("127.0.0.1", 0)) as silent:
        # It accepts and ends the connection.
        import threading

        def hang_up() -> None:
            connection, _ = silent.accept()
            connection.recv(64)
            connection.close()

        threading.Thread(target=hang_up, daemon=True).start()
        port = silent.getsockname()[1]
        raises(xuxa.Lost, lambda: xuxa.Mailbox(f"127.0.0.1:{port}", user=user, password="x"))
    error = xuxa.NoSuchEntry("the mailbox has no entry 7", 7)
    assert error.number == 7 and str(error) == "the mailbox has no entry 7"
    assert all(hasattr(xuxa, name) for name in xuxa.__all__)
    print("xuxa", xuxa.__version__, "works")


if __name__ == "__main__":
    main()
