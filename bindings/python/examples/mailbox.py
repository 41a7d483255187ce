"""Sends a Flash to its own user, waits for the alert, reads the message, and deletes it."""

import os
import sys

import xuxa


def main() -> int:
    if len(sys.argv) != 3:
        print("usage: XUXA_PASSWORD=... mailbox.py HOST:PORT O/R-ADDRESS", file=sys.stderr)
        return 2
    store, user = sys.argv[1:]
    password = os.environ.get("XUXA_PASSWORD", "")
    try:
        with xuxa.Mailbox(store, user=user, password=password) as mailbox:
            alerts = mailbox.watch(at_least="flash", timeout=30)
            submitted = mailbox.submit([user], subject="TEST", text="THIS IS A TEST.", precedence="flash", sics=["ABC"])
            print("accepted as", submitted.identifier)
            for entry in alerts:
                if entry.content_identifier != submitted.content_identifier:
                    continue
                message = mailbox.fetch(entry.number)
                for label, value in message.heading:
                    print(f"{label:>12}  {value}")
                print(message.text)
                mailbox.delete(entry.number)
                return 0
            print("no alert came within 30 seconds", file=sys.stderr)
            return 1
    except xuxa.InDoubt as doubt:
        print("submit it again with the content identifier", doubt.content_identifier, file=sys.stderr)
        return 4
    except xuxa.CredentialsRefused as refused:
        print(refused, file=sys.stderr)
        return 2
    except xuxa.Error as error:
        print(f"{type(error).__name__}: {error}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
