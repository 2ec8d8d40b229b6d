"""Foreign text steers no terminal."""

from hypothesis import given
from hypothesis import strategies as st

from proxy_operator.runtime.text import plain, plain_lines


def test_control_characters_are_escaped():
    assert plain("a\x1b[2Jb\r\nc\x85d\x9b\u202e") == "a\\x1b[2Jb\\r\\nc\\x85d\\x9b\\u202e"
    assert plain("é ü 漢 \\n") == "é ü 漢 \\n"
    assert plain_lines("a\r\n\tb\n") == "a\\r\n\\tb\n"


@given(st.text())
def test_what_is_plain_stays_as_it_is(text):
    assert plain(text).isprintable()
    assert plain(plain(text)) == plain(text)
