import asyncio
import logging
import os

import pytest

from proxy_operator.adapters.web.auth import (
    BearerGuard,
    FileToken,
    StaticToken,
    check_exposure,
    read_token,
)
from proxy_operator.adapters.web.bind import parse_bind
from proxy_operator.adapters.web.errors import ApiError
from proxy_operator.runtime.clock import LoopClock
from tests.builders import EPOCH


def is_let_in(guard: BearerGuard, *values: str) -> bool:
    try:
        guard.check([(b"authorization", value.encode()) for value in values])
    except ApiError as err:
        return err.code != "unauthorized"
    return True


@pytest.mark.parametrize(
    ("bind", "has_token", "allow", "outcome"),
    [
        ("127.0.0.1:8090", True, False, "quiet"),
        (":8090", True, False, "quiet"),
        ("127.0.0.1:8090", False, False, "warned"),
        ("[::1]:8090", False, False, "warned"),
        ("localhost:8090", False, False, "warned"),
        (":8090", False, False, "refused"),
        ("0.0.0.0:8090", False, False, "refused"),
        ("[::]:8090", False, False, "refused"),
        ("192.0.2.1:8090", False, False, "refused"),
        (":8090", False, True, "warned"),
    ],
)
def test_only_loopback_is_open_by_default(bind, has_token, allow, outcome):
    def check() -> str | None:
        return check_exposure(parse_bind(bind), has_token=has_token, allow_unauthenticated=allow)

    if outcome == "refused":
        with pytest.raises(ValueError, match="--allow-unauthenticated"):
            check()
    else:
        assert (check() is not None) is (outcome == "warned")


@pytest.mark.parametrize(
    ("header", "let_in"),
    [
        ("Bearer secret", True),
        ("bearer  secret ", True),
        ("Bearer secreT", False),
        ("Bearer secret2", False),
        ("Bearer", False),
        ("Bearer ", False),
        ("Basic secret", False),
        ("secret", False),
        ("Bearer sécret", False),
    ],
)
def test_the_token_must_be_exact(header, let_in):
    assert is_let_in(BearerGuard(StaticToken(b"secret")), header) is let_in


def test_neither_no_header_nor_two_are_let_in():
    guard = BearerGuard(StaticToken(b"secret"))
    assert not is_let_in(guard)
    assert not is_let_in(guard, "Bearer secret", "Bearer secret")


@pytest.mark.parametrize("text", ["", " \n", "a b", "a\tb", "é", "a\x7f"])
def test_what_cannot_be_a_token_is_refused_without_repeating_it(text):
    with pytest.raises(ValueError, match="the token") as caught:
        read_token(text)
    assert not text.strip() or text not in str(caught.value)


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "token"
    path.write_text("first\n")
    return path


@pytest.mark.looptime(start=0)
async def test_a_rotated_file_is_read_again_within_a_second(path):
    tokens = FileToken(path, LoopClock(EPOCH))
    tokens.load()
    assert tokens.current() == b"first"
    new = path.with_name("new")
    new.write_text("second")
    os.replace(new, path)
    await asyncio.sleep(1)
    assert tokens.current() == b"second"
    guard = BearerGuard(tokens)
    assert is_let_in(guard, "Bearer second")
    assert not is_let_in(guard, "Bearer first")


@pytest.mark.looptime(start=0)
@pytest.mark.parametrize("damage", ["emptied", "removed", "binary"])
async def test_a_damaged_file_leaves_the_last_token_in_force(path, damage, caplog):
    tokens = FileToken(path, LoopClock(EPOCH))
    tokens.load()
    if damage == "removed":
        path.unlink()
    else:
        path.write_bytes(b"" if damage == "emptied" else b"\xff\xfe")
    with caplog.at_level(logging.WARNING):
        await asyncio.sleep(1)
        assert tokens.current() == b"first"
    assert caplog.records[0].message == "token file unusable, the last token stays in force"
    assert "first" not in repr(caplog.records[0].__dict__)
    assert not is_let_in(BearerGuard(tokens), "Bearer ")
    path.write_text("third")
    await asyncio.sleep(1)
    assert tokens.current() == b"third"


@pytest.mark.looptime(start=0)
@pytest.mark.parametrize("content", [None, b"", b"\xff"])
async def test_a_file_that_is_no_good_at_the_start_is_one_clear_sentence(tmp_path, content):
    path = tmp_path / "token"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(ValueError, match=str(path)):
        FileToken(path, LoopClock(EPOCH)).load()
