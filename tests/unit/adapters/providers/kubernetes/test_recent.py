from proxy_operator.adapters.providers.kubernetes.recent import Recent


def test_what_was_noted_is_known_until_it_is_taken() -> None:
    recent = Recent[str, int](2)
    recent.note("a", 1)
    assert "a" in recent
    assert recent.take("a") == 1
    assert "a" not in recent
    assert recent.take("a") is None


def test_the_oldest_entry_makes_room_and_a_note_makes_an_entry_new() -> None:
    recent = Recent[str, int](2)
    for name in ("a", "b", "a", "c"):
        recent.note(name, 0)
    assert [name in recent for name in "abc"] == [True, False, True]
