import unicodedata

from hypothesis import given, settings
from hypothesis import strategies as st

from nessie_cli.inspection.text import visible
from nessie_cli.render.text import cells, fit_alike, pad, shorten_end, shorten_middle, wrap

TEXTS = st.text(st.characters(codec="utf-8") | st.sampled_from("a /é日本́\u200d🙂"), max_size=60)
SHOWN = TEXTS.map(visible)
WIDTHS = st.integers(4, 40)
quick = settings(max_examples=150, deadline=None, print_blob=True)


@quick
@given(st.text(st.characters(), max_size=40))
def test_no_control_character_is_left(text: str) -> None:
    shown = visible(text)
    assert not any(unicodedata.category(char) in ("Cc", "Cs", "Zl", "Zp") for char in shown)
    assert not set(shown) & set("\u200b\u200e\u200f\u202a\u202e\u2066\u2069\ufeff")
    assert visible(shown) == shown


def test_escapes_are_readable_and_ordinary_text_is_untouched() -> None:
    assert (
        visible("a\x1b[31m\nb\tc\x7f\x9b\u202e\U000e0041\ud800")
        == "a\\x1b[31m\\nb\\tc\\x7f\\x9b\\u202e\\U000e0041\\ud800"
    )
    assert (
        visible('db."order.lines" é 日本語 می‌خواهم 👩‍💻 \\')
        == 'db."order.lines" é 日本語 می‌خواهم 👩‍💻 \\'
    )


def test_wide_characters_take_two_cells_and_marks_none() -> None:
    assert cells("abc") == 3
    assert cells("日本") == 4
    assert cells("e\u0301") == 1
    assert cells("\u0627\u20dd") == 1, "a circle around a letter"
    assert cells("\uff21\uff11") == 4, "the wide forms of narrow letters"
    assert cells("\u0645\u06cc\u200c\u062e") == 3, "a joiner is not seen"
    assert pad("日", 4) == "日  "


@quick
@given(SHOWN, WIDTHS)
def test_shortened_text_fits_and_text_that_fits_is_untouched(text: str, width: int) -> None:
    for shorten in (shorten_middle, shorten_end):
        found = shorten(text, width)
        assert cells(found) <= width
        assert (found == text) == (cells(text) <= width)


def test_the_middle_is_left_out() -> None:
    assert shorten_middle("s3://lake/orders/00012.json", 15) == "s3://la…12.json"
    assert shorten_end("nightly load", 8) == "nightly…"


@quick
@given(st.lists(SHOWN, min_size=2, max_size=3), WIDTHS)
def test_values_side_by_side_that_differ_never_come_out_equal(texts: list[str], width: int) -> None:
    found = fit_alike(texts, width)
    assert [a == b for a in found for b in found] == [a == b for a in texts for b in texts]
    assert all(cells(text) <= width for text in found) or found == texts


def test_values_side_by_side_lose_what_they_share() -> None:
    assert fit_alike(
        ["s3://lake/db/metadata/00012-a.json", "s3://lake/db/metadata/00013-b.json"], 16
    ) == ["…/00012-a.json", "…/00013-b.json"]
    long = "s3://lake/00012-aaaaaaaaaaaaaaa{}bbbbbbbbbbbbbbbbbbb.metadata.json"
    assert fit_alike([long.format(1), long.format(2)], 12) == ["…aaa1bbbbbb…", "…aaa2bbbbbb…"]
    assert fit_alike(["short", "other"], 12) == ["short", "other"]


@quick
@given(SHOWN, WIDTHS)
def test_wrapped_lines_fit_and_lose_nothing_but_spaces(text: str, width: int) -> None:
    lines = wrap(text, width)
    assert all(cells(line) <= width for line in lines)
    assert "".join(lines).replace(" ", "") == text.replace(" ", "")


def test_lines_break_at_spaces_if_possible() -> None:
    assert wrap("load of a long night", 8) == ["load of", "a long", "night"]
    assert wrap("abcdefghij kl", 5) == ["abcde", "fghij", "kl"]
    assert wrap("", 5) == [""]


def test_similar_texts_beside_an_unrelated_one_are_shortened_to_their_difference() -> None:
    location = "s3://lake/warehouse/db/metadata/{:05}-9f86d081-884c-4d65-{:04}.metadata.json"
    found = fit_alike(
        [location.format(12, 1), location.format(13, 1), "s3://mine/x.json", "(none)"], 16
    )
    assert found == ["…/00012-9f86d08…", "…/00013-9f86d08…", "s3://mine/x.json", "(none)"]
