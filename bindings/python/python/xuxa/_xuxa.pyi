"""The compiled part of xuxa."""

from collections.abc import Iterator, Sequence
from datetime import datetime
from os import PathLike
from types import TracebackType
from typing import Literal, final

Precedence = Literal["override", "flash", "immediate", "priority", "routine", "deferred"]
Order = Literal["arrival", "precedence"]
Reports = Literal["none", "non-delivery", "delivery"]

__version__: str

@final
class Entry:
    """An entry of the mailbox. What the store or the entry does not have is None."""

    @property
    def number(self) -> int: ...
    @property
    def kind(self) -> Literal["message", "report", "other"]: ...
    @property
    def status(self) -> Literal["new", "listed", "processed", "other"]: ...
    @property
    def precedence(self) -> Precedence | None: ...
    @property
    def identifier(self) -> str | None: ...
    @property
    def content_identifier(self) -> str | None: ...
    @property
    def originator(self) -> str | None: ...
    @property
    def recipient(self) -> str | None: ...
    @property
    def subject(self) -> str | None: ...
    @property
    def size(self) -> int | None: ...
    @property
    def created(self) -> datetime | None: ...
    @property
    def delivered(self) -> datetime | None: ...
    @property
    def submitted(self) -> datetime | None: ...

@final
class File:
    """A file of a message."""

    @property
    def name(self) -> str | None:
        """Its name as it was sent: others chose it, so never a path to write to."""

    @property
    def safe_name(self) -> str:
        """Its name without directories, control characters and leading dots."""

    @property
    def data(self) -> bytes: ...

@final
class Message:
    """An entry with its content."""

    @property
    def entry(self) -> Entry: ...
    @property
    def heading(self) -> list[tuple[str, str]]:
        """Every field of the heading: label and value."""

    @property
    def text(self) -> str:
        """The text body parts, one after the other."""

    @property
    def files(self) -> list[File]: ...
    @property
    def content(self) -> bytes:
        """The content as it was delivered; empty for a report."""

    @property
    def recipients(self) -> list[tuple[str, bool, str | None]]:
        """Of a report: recipient, whether it was delivered, and the reason if not."""

@final
class Submitted:
    """The MTA has accepted a message: it is on its disk."""

    @property
    def identifier(self) -> str: ...
    @property
    def content_identifier(self) -> str: ...
    @property
    def date_time_group(self) -> str: ...

@final
class Alerts(Iterator[Entry]):
    """Entries as they arrive."""

    def __iter__(self) -> Alerts: ...
    def __next__(self) -> Entry: ...

@final
class Entries(Iterator[Entry]):
    """The entries of a list, read in pages."""

    def __iter__(self) -> Entries: ...
    def __next__(self) -> Entry: ...

@final
class Mailbox:
    """A user bound to its mailbox. Use it in a `with` statement, or call `close`."""

    def __init__(
        self,
        store: str,
        *,
        user: str,
        password: str,
        answer_timeout: float = 120.0,
        pcap: str | PathLike[str] | None = None,
    ) -> None:
        """Connects to the P7 listener `store` ("HOST:PORT") and binds.

        Raises NotConnected, BindRefused (CredentialsRefused, Busy), Lost, InvalidAddress.
        """

    def list(
        self,
        *,
        order: Order = "precedence",
        precedence: Precedence | None = None,
        at_least: Precedence | None = None,
        subject: str | None = None,
        unread: bool = False,
        since_number: int = 0,
    ) -> Entries:
        """Entries that fulfil every condition, read in pages as they are taken; nothing is taken out of the mailbox.

        Of one precedence the oldest is first. `unread` leaves out what was fetched before.
        """

    def fetch(self, number: int, *, max_size: int = 67108864) -> Message:
        """A message or report with its content, which must have at most `max_size` octets.

        Raises NoSuchEntry, TooLong, Lost.
        """

    def fetch_to(self, number: int, path: str | PathLike[str]) -> int:
        """Writes a content of any length into a new file; returns its octets. Nothing is overwritten."""

    def submit(
        self,
        to: Sequence[str],
        *,
        copy: Sequence[str] = (),
        subject: str | None = None,
        text: str | None = None,
        files: Sequence[str | PathLike[str]] = (),
        size: int | None = None,
        precedence: Precedence = "routine",
        sics: Sequence[str] = (),
        reports: Reports = "non-delivery",
        civil: bool = False,
        content_identifier: str | None = None,
        date_time_group: str | None = None,
    ) -> Submitted:
        """Submits a message of a text, or of `size` octets of generated text, with files.

        Returns once the MTA has it on its disk. Raises SubmissionRefused, InDoubt, Lost, InvalidAddress, InvalidValue.
        """

    def delete(self, *numbers: int) -> None:
        """Deletes entries. Raises NoSuchEntry; then none of up to 1,000 is deleted."""

    def watch(self, *, at_least: Precedence = "deferred", timeout: float | None = None) -> Alerts:
        """Entries as they arrive. The iterator ends when none arrived for `timeout` seconds; None: never."""

    def close(self) -> None:
        """Unbinds. What other threads wait for ends with Interrupted."""

    def __enter__(self) -> Mailbox: ...
    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None: ...
