"""A failure is classified by its type and number, never by its message."""

import errno
import os

import pyarrow as pa
import pytest
from lance.commit import CommitConflictError

from omnigraph.errors import StorageError, StorageKind, Transient
from omnigraph.storage.failures import as_storage_errors, panics_as_errors, to_storage_error

SECRET = "https://key:hush@store.example/bucket/x?X-Amz-Signature=hush"


def numbered(number: int) -> OSError:
    return OSError(number, os.strerror(number))


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (CommitConflictError("lost"), "precondition"),
        (FileExistsError(), "precondition"),
        (FileNotFoundError(), "not_found"),
        (PermissionError(), "configuration"),
        (NotImplementedError(), "configuration"),
        (ConnectionResetError(), "transient"),
        (ConnectionRefusedError(), "transient"),
        (TimeoutError(), "transient"),
        (numbered(errno.ENOSPC), "configuration"),
        (numbered(errno.EDQUOT), "configuration"),
        (numbered(errno.EROFS), "configuration"),
        (numbered(errno.EBUSY), "transient"),
        (numbered(errno.EIO), "unknown"),
        (OSError("a timeout: permission denied, not found, no space left"), "unknown"),
        (ValueError("not found"), "unknown"),
        (RuntimeError(), "unknown"),
    ],
    ids=repr,
)
def test_failure_kind_follows_the_exception_type(error: Exception, kind: StorageKind) -> None:
    found = to_storage_error(error)
    assert (found.kind, found.effect) == (kind, "unknown")
    assert isinstance(found, Transient) == (kind == "transient")


def test_more_specific_exception_type_wins() -> None:
    class LateError(TimeoutError):
        pass

    assert to_storage_error(LateError(), extra_kinds={LateError: "permanent"}).kind == "permanent"
    assert to_storage_error(TimeoutError(), extra_kinds={LateError: "permanent"}).kind == "transient"


def test_a_read_has_no_effect() -> None:
    assert to_storage_error(TimeoutError(), effect="none").effect == "none"


def test_typed_errors_pass_unchanged() -> None:
    error = StorageError(kind="permanent")
    assert to_storage_error(error) is error


@pytest.mark.parametrize(
    "text",
    [
        f"cannot read {SECRET}",
        f"cannot read\n{SECRET}",
        "403 Forbidden: <?xml?><Error><AWSAccessKeyId>hush</AWSAccessKeyId></Error>",
    ],
)
def test_messages_contain_no_secrets(text: str) -> None:
    found = to_storage_error(OSError(text))
    assert "hush" not in f"{found} {found.details}"


def test_long_messages_are_truncated() -> None:
    assert len(str(to_storage_error(OSError("x" * 10_000)))) < 400


def test_os_error_is_kept_as_the_cause() -> None:
    with pytest.raises(StorageError) as caught, as_storage_errors("none"):
        raise numbered(errno.ENOSPC)
    assert isinstance(caught.value.__cause__, OSError)


def test_other_exceptions_pass_unchanged() -> None:
    with pytest.raises(KeyError), as_storage_errors("none"):
        raise KeyError


@pytest.mark.parametrize("raised", [pa.ArrowInvalid, OSError])
def test_an_interrupt_that_a_reader_wraps_stays_an_interrupt(raised: type[Exception]) -> None:
    """Arrow's readers wrap the exceptions of Python code, including that of Ctrl-C."""
    with pytest.raises(KeyboardInterrupt), panics_as_errors():
        raise raised("External error: KeyboardInterrupt")
    with pytest.raises(KeyboardInterrupt), as_storage_errors("none"):
        raise raised("External error: KeyboardInterrupt")
