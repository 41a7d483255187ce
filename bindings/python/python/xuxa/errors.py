"""What can go wrong, one class for each kind. The text of an error is for people; programs look at the class and at
its attributes."""


class Error(Exception):
    """Any error of this package."""


class NotConnected(Error, ConnectionError):
    """There is no TCP connection to the message store."""


class Lost(Error, ConnectionError):
    """The association ended before an answer: what was asked for may have been done. Bind again."""


class Interrupted(Error):
    """The mailbox was closed by another thread."""


class BindRefused(Error):
    """The message store refused the bind."""


class CredentialsRefused(BindRefused, PermissionError):
    """Unknown user or wrong password: another attempt does not help."""


class Busy(BindRefused):
    """It has no place for another association now: try again later."""


class OperationRefused(Error):
    """The store refused an operation. The association continues."""


class NoSuchEntry(OperationRefused, KeyError):
    """The mailbox has no entry of this number."""

    number: int

    def __init__(self, text: str, number: int) -> None:
        super().__init__(text)
        self.number = number

    def __str__(self) -> str:
        return str(self.args[0])


class SubmissionRefused(OperationRefused):
    """The MTA does not accept the message; the reason is in the text."""


class InDoubt(Error):
    """All of a message was sent, and the answer was lost: the MTA has accepted it or not.

    Submit the same message again with this `content_identifier` and this `date_time_group`: an MTA of this project
    accepts it once.
    """

    content_identifier: str
    date_time_group: str

    def __init__(self, text: str, content_identifier: str, date_time_group: str) -> None:
        super().__init__(text)
        self.content_identifier = content_identifier
        self.date_time_group = date_time_group


class BadAnswer(Error):
    """The store answered what it must not. The association is of no more use."""


class TooLong(BadAnswer):
    """A content is longer than `max_size`: `fetch_to` writes one of any length into a file. Bind again."""


class InvalidValue(Error, ValueError):
    """An argument has no valid value, or a file cannot be read."""


class InvalidAddress(InvalidValue):
    """A text is not an O/R address."""
