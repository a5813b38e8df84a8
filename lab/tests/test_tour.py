# SPDX-License-Identifier: MIT
"""The page of a tour: a card for each document, and what five minutes do not show is open."""

from pathlib import Path

import pytest
from playwright.sync_api import Browser

import touring
from browsing import LAPTOP, SCREENS, needs_browser, opened
from weir_lab.experiments import remake
from weir_lab.report import page as pages
from weir_lab.report.page import Grade, Report

SCREENS_MOST = 6
PAGE_MAX = 1_500_000  # bytes


@pytest.fixture(scope="module")
def tour(tmp_path_factory: pytest.TempPathFactory) -> Report:
    return remake.run(touring.tour(tmp_path_factory.mktemp("results")))


@pytest.fixture(scope="module")
def page_of_tour(tour: Report, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return pages.write(tour, tmp_path_factory.mktemp("tour"))


def test_each_document_is_a_card_with_a_claim_a_picture_and_an_outcome(tour: Report) -> None:
    cards = {section.title[0]: section for section in tour.sections[:5]}
    assert list(cards) == list("abcde")
    for letter, card in cards.items():
        assert "document" in card.headline.sentence, letter
        assert card.headline.pictures, letter
        assert card.headline.mark, letter
        assert card.headline.mark.word in ("Works", "Open"), letter
    for letter in "abcd":
        series = {row[1] for row in cards[letter].headline.pictures[0].rows}
        assert any("document" in name for name in series), letter
        assert any("here" in name for name in series), letter
    assert tour.headline
    assert "source documents work here" in tour.headline.sentence
    assert len(tour.headline.numbers) == 3


def test_a_difference_that_is_not_shown_is_open_and_not_broken(tmp_path: Path) -> None:
    (card,) = remake.run(touring.document(tmp_path / "equal", "a", gain=1.0)).sections
    assert card.headline.mark
    assert card.headline.mark.grade is Grade.YELLOW
    assert "more are needed" in card.headline.mark.reason
    (slow,) = remake.run(touring.document(tmp_path / "slow", "a", gain=0.5)).sections
    assert slow.headline.mark
    assert slow.headline.mark.grade is Grade.RED
    assert "keep-alive slower" in slow.headline.mark.reason


def test_several_documents_have_the_worst_mark_and_count_their_points(tmp_path: Path) -> None:
    whole = remake.run(touring.document(tmp_path / "both", "ab")).headline
    assert whole
    assert whole.sentence == "2 of 2 source documents work here in every point."
    assert [number.value for number in whole.numbers] == ["7", "0", "0"]
    slow = remake.run(touring.document(tmp_path / "slow", "ab", gain=0.5)).headline
    assert slow
    assert slow.sentence.endswith("1 does not work in some point.")
    assert slow.mark
    assert slow.mark.grade is Grade.RED
    assert [number.value for number in slow.numbers] == ["6", "1", "0"]


@needs_browser
@pytest.mark.parametrize("screen", SCREENS)
def test_the_page_of_a_tour_fits_each_screen(
    browser: Browser, page_of_tour: Path, screen: str
) -> None:
    width, height = SCREENS[screen]
    page, troubles = opened(browser, page_of_tour, width, "light", height)
    assert troubles == []
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    for card in page.locator(".card").all():
        box = card.bounding_box()
        assert box
        assert box["x"] + box["width"] <= width
    page.close()


@needs_browser
def test_a_tour_is_at_most_six_screens_of_a_laptop(browser: Browser, page_of_tour: Path) -> None:
    width, height = LAPTOP
    page, _ = opened(browser, page_of_tour, width, "light", height)
    assert page.evaluate("document.documentElement.scrollHeight") <= SCREENS_MOST * height
    assert page.locator(".card").count() == 10
    first = page.locator(".first").first.bounding_box()
    assert first
    assert first["y"] + first["height"] <= height
    page.locator(".card summary").first.click()
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    page.close()
    assert page_of_tour.stat().st_size < PAGE_MAX
