"""The package against an MTA with a message store. The test `bindings` of the end-to-end tests starts it: argv is HOST:PORT,
a user with an empty mailbox, the file of his password, and a free folder. After `watching` is printed it kills the MTA and
starts it again."""

import sys
import time
from pathlib import Path

import xuxa


def bind_again(store: str, user: str, password: str) -> xuxa.Mailbox:
    """Binds once the MTA is there."""
    for _ in range(600):
        try:
            return xuxa.Mailbox(store, user=user, password=password)
        except (xuxa.NotConnected, xuxa.Busy, xuxa.Lost):
            time.sleep(0.05)
    raise AssertionError("the MTA is not there again")


def main() -> None:
    store, user = sys.argv[1:3]
    password, folder = Path(sys.argv[3]).read_text().strip(), Path(sys.argv[4])
    folder.mkdir()
    (folder / "chart.bin").write_bytes(bytes([0, 27, 255, 7]) * 50_000)
    try:
        xuxa.Mailbox(store, user=user, password="wrong")
    except xuxa.CredentialsRefused:
        pass
    else:
        raise AssertionError("a wrong password was accepted")

    with xuxa.Mailbox(store, user=user, password=password) as mailbox:
        assert list(mailbox.list()) == []
        alerts = mailbox.watch(at_least="flash", timeout=30)
        routine = mailbox.submit([user], subject="SITREP", text="NOTHING TO REPORT.", precedence="routine")
        flash = mailbox.submit(
            [user], subject="CONTACT", text="TWO SHIPS.", precedence="flash", sics=["ABC"], files=[folder / "chart.bin"]
        )
        assert routine.identifier != flash.identifier
        alert = next(alerts)
        assert (alert.subject, alert.precedence, alert.identifier) == ("CONTACT", "flash", flash.identifier), alert
        assert alert.content_identifier == flash.content_identifier and alert.status == "new", alert

        for _ in range(600):
            entries = list(mailbox.list())
            if len(entries) == 2:
                break
            time.sleep(0.05)
        assert [entry.precedence for entry in entries] == ["flash", "routine"], entries
        assert sorted(entry.number for entry in mailbox.list(order="arrival")) == [1, 2]
        assert [entry.number for entry in mailbox.list(subject="CONT")] == [alert.number]
        message = mailbox.fetch(alert.number)
        assert message.text == "TWO SHIPS." and ("subject", "CONTACT") in message.heading, message.heading
        (file,) = message.files
        assert (file.safe_name, file.data) == ("chart.bin", (folder / "chart.bin").read_bytes()), file.safe_name
        assert mailbox.fetch_to(alert.number, folder / "content") == len(message.content) == alert.size
        assert (folder / "content").read_bytes() == message.content
        (unread,) = mailbox.list(unread=True)
        assert unread.identifier == routine.identifier, unread
        mailbox.delete(alert.number)
        try:
            mailbox.fetch(alert.number)
        except xuxa.NoSuchEntry as error:
            assert error.number == alert.number
        else:
            raise AssertionError("the entry was deleted")

        print("watching", flush=True)
        try:
            for entry in mailbox.watch(at_least="flash", timeout=60):
                raise AssertionError(f"nothing was sent: {entry.subject}")
        except xuxa.Lost:
            pass
        else:
            raise AssertionError("the MTA was killed")

    with bind_again(store, user, password) as mailbox:
        assert [entry.identifier for entry in mailbox.list()] == [routine.identifier]
        mailbox.delete(unread.number)
        alerts = mailbox.watch(at_least="flash", timeout=30)
        again = mailbox.submit([user], subject="AGAIN", text="STILL TWO.", precedence="override")
        entry = next(alerts)
        assert (entry.identifier, entry.number) == (again.identifier, 3), entry
        assert mailbox.fetch(entry.number).text == "STILL TWO."
    print("done", flush=True)


if __name__ == "__main__":
    main()
