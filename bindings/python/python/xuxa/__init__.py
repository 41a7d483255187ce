"""X.400 and STANAG 4406 messages from Python, over P7 to a message store.

    with xuxa.Mailbox("127.0.0.1:5017", user="/C=IT/ADMD=NET/PRMD=ACT/S=OPS", password="secret") as mailbox:
        for entry in mailbox.list(precedence="flash"):
            print(entry.number, entry.subject)

Every error is a class of `xuxa.errors`, below `xuxa.Error`.
"""

from ._xuxa import Entry, File, Mailbox, Message, Submitted, __version__
from .errors import (
    BadAnswer,
    BindRefused,
    Busy,
    CredentialsRefused,
    Error,
    InDoubt,
    Interrupted,
    InvalidAddress,
    InvalidValue,
    Lost,
    NoSuchEntry,
    NotConnected,
    OperationRefused,
    SubmissionRefused,
    TooLong,
)

__all__ = [
    "BadAnswer",
    "BindRefused",
    "Busy",
    "CredentialsRefused",
    "Entry",
    "Error",
    "File",
    "InDoubt",
    "Interrupted",
    "InvalidAddress",
    "InvalidValue",
    "Lost",
    "Mailbox",
    "Message",
    "NoSuchEntry",
    "NotConnected",
    "OperationRefused",
    "SubmissionRefused",
    "Submitted",
    "TooLong",
    "__version__",
]
