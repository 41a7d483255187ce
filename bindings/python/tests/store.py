"""The package against a message store that has two messages, the second a Flash with a file. The test `python` of
xuxa-cli starts it: argv is HOST:PORT, the user, and a free folder. After `ready` is printed it delivers a Flash."""

import sys
from pathlib import Path

import xuxa


def main() -> None:
    store, user, folder = sys.argv[1], sys.argv[2], Path(sys.argv[3])
    try:
        xuxa.Mailbox(store, user=user, password="wrong")
    except xuxa.CredentialsRefused as error:
        assert isinstance(error, xuxa.BindRefused) and isinstance(error, PermissionError)
    else:
        raise AssertionError("a wrong password was accepted")
    with xuxa.Mailbox(store, user=user, password="vesuvio") as mailbox:
        entries = list(mailbox.list())
        assert [entry.precedence for entry in entries] == ["flash", "routine"], entries
        assert [entry.number for entry in mailbox.list(order="arrival")] == [1, 2]
        assert [entry.number for entry in mailbox.list(precedence="flash")] == [2]
        assert entries[0].created is not None and entries[0].created.tzinfo is not None
        message = mailbox.fetch(2)
        assert message.text == "TWO SHIPS." and ("subject", "CONTACT") in message.heading, message.heading
        (file,) = message.files
        assert (file.name, file.safe_name, file.data) == ("../chart.bin", "chart.bin", bytes([0, 27, 255, 7])), file
        assert mailbox.fetch_to(2, folder / "content") == len(message.content)
        assert (folder / "content").read_bytes() == message.content
        assert [entry.number for entry in mailbox.list(unread=True)] == [1]
        try:
            mailbox.fetch(99)
        except xuxa.NoSuchEntry as error:
            assert error.number == 99 and isinstance(error, xuxa.OperationRefused)
        else:
            raise AssertionError("there is no entry 99")
        alerts = mailbox.watch(at_least="flash", timeout=30)
        print("ready", flush=True)
        assert next(alerts).subject == "ALERT"
        submitted = mailbox.submit([user], subject="FUEL", text="THREE DAYS.", precedence="flash", files=[folder / "content"])
        assert submitted.identifier and len(submitted.content_identifier) == 16
        mailbox.delete(1, 2)
        assert [entry.subject for entry in mailbox.list()] == ["ALERT"]
    try:
        list(mailbox.list())
    except xuxa.Lost:
        pass
    else:
        raise AssertionError("the mailbox is closed")
    print("done", flush=True)


if __name__ == "__main__":
    main()
