"""What the page says: one file a language, all of them whole, chosen by the browser or by hand, and right to left."""

import json
import re

import pytest

from browser_fixtures import AXE, MANY, MARFAN, ROOT, answered, violations

SOURCES = ROOT / "web" / "src"
LANGUAGES = ("en", "de", "es")
TEXTS = {name: json.loads((SOURCES / "texts" / f"{name}.json").read_text("utf-8")) for name in LANGUAGES}
CODE = {file.name: file.read_text("utf-8") for file in SOURCES.glob("*.ts") if file.name != "types.ts"}
VIEWS = {
    "ask": ("ask?base=hpo", ".example"),
    "answer": (f"ask?base=hpo&q={MARFAN}", ".follow"),
    "table": (f"ask?base=hpo&q={MANY}&as=table", ".answer-table"),
    "between": ("explore?base=hpo&e=NCBIGene:2200&e=HP:0001166", "img.drawing"),
    "compare": (f"compare?base=hpo&q={MARFAN}&method=bm25&other=hybrid", ".remarks"),
    "documents": ("documents?base=papers", ".drop"),
    "reference": ("api", ".reference"),
}


def holes(text: str) -> set[str]:
    return set(re.findall(r"\{(\w+)\}", text))


@pytest.mark.parametrize("language", LANGUAGES[1:])
def test_every_language_says_everything(language):
    texts, own = TEXTS["en"], TEXTS[language]
    assert list(own) == list(texts), "the same texts in the same order"
    for key, text in texts.items():
        assert own[key].strip(), key
        assert holes(own[key]) == holes(text), key
        assert own[key][:1].isspace() == text[:1].isspace(), key
    same = [key for key, text in texts.items() if own[key] == text and len(text.split()) > 1 and not holes(text)]
    assert same == [], "nothing was left in English"


def test_every_text_is_used_and_every_used_text_is_there():
    """The types check the second half where keys are written out; here also those that are put together."""
    code = "\n".join(CODE.values())
    named = set(re.findall(r'"([\w.]+)"', code))
    stems = re.findall(r"`(\w+\.)\$\{", code)
    for key in TEXTS["en"]:
        stem = re.sub(r"\.(one|other)$", "", key)
        assert key in named or stem in named or any(key.startswith(one) for one in stems), f"{key} is used nowhere"


ENGLISH = re.compile(r'"[A-Z][a-z]+(?: [^"]*)?"|"[a-z]+(?: [a-z]+)+ …"|`[A-Z][a-z]+ [^`]*`')
NO_TEXTS = {"Clew", "Markdown", "Cypher", "Enter", "Escape", "Authorization: Bearer TOKEN", "Bearer ${bearer}"}


@pytest.mark.parametrize("file", sorted(CODE))
def test_no_text_is_written_into_the_program(file):
    lines = [line for line in CODE[file].splitlines() if not re.match(r"\s*(//|/\*\*|\*)", line)]
    found = {text[1:-1] for line in lines for text in ENGLISH.findall(line)}
    assert found - NO_TEXTS == set() or file == "texts.ts"


def opened(browser, locale: str, **more):
    settings = {"viewport": {"width": 1280, "height": 860}, "reduced_motion": "reduce", **more}
    context = browser.new_context(locale=locale, **settings)
    page = context.new_page()
    page.set_default_timeout(60_000)
    return page


@pytest.mark.parametrize(
    ("locale", "language", "title"),
    [
        ("de-AT", "de", "Was möchten Sie wissen?"),
        ("es-MX", "es", "¿Qué le gustaría saber?"),
        ("fr-FR", "en", "What would you like to know?"),
    ],
)
def test_the_browser_chooses_the_language(browser, site, locale, language, title):
    page = opened(browser, locale)
    page.goto(f"{site}/#/ask?base=hpo")
    page.get_by_role("heading", name=title).wait_for()
    assert page.evaluate("document.documentElement.lang") == language
    page.context.close()


def test_another_language_can_be_chosen_and_stays(browser, site):
    page = opened(browser, "de")
    page.goto(f"{site}/#/ask?base=hpo&q={MARFAN}")
    answered(page)
    assert page.get_by_role("tab", name="Abfrage").count() == 1
    page.get_by_label("Sprache").select_option("es")
    page.get_by_role("tab", name="Consulta").wait_for()
    page.reload()
    page.get_by_role("tab", name="Consulta").wait_for()
    page.context.close()


@pytest.mark.parametrize("language", LANGUAGES[1:])
def test_no_view_falls_back_to_english_or_breaks_a_rule(browser, site, language):
    """Nothing that a label or a button says is English, at the width of a phone, where long words show."""
    page = opened(browser, language, viewport={"width": 375, "height": 740}, bypass_csp=True)
    english = {text for key, text in TEXTS["en"].items() if TEXTS[language][key] != text and not holes(text)}
    for view, (address, there) in VIEWS.items():
        page.goto(f"{site}/#/{address}")
        page.locator(there).first.wait_for(state="attached")
        said = page.evaluate(
            "[...document.querySelectorAll('button, label, h1, h2, [aria-label], [placeholder], legend, option')]"
            ".flatMap((one) => [one.textContent.trim(), one.getAttribute('aria-label'), one.placeholder])"
        )
        assert english & set(said) == set(), view
        assert page.evaluate("document.documentElement.scrollWidth") <= 375, view
        if AXE.is_file():
            assert violations(page) == [], view
    page.context.close()


@pytest.mark.parametrize("width", [1280, 375])
def test_right_to_left_nothing_overflows_and_arrows_still_point_to_the_tail(browser, site, width):
    page = opened(browser, "en", viewport={"width": width, "height": 860}, bypass_csp=True)
    page.add_init_script(
        "new MutationObserver(() => { document.documentElement.dir = 'rtl'; })"
        ".observe(document, { childList: true, subtree: true })"
    )
    for view, (address, there) in VIEWS.items():
        page.goto(f"{site}/#/{address}")
        page.locator(there).first.wait_for(state="attached")
        assert page.evaluate("document.documentElement.dir") == "rtl"
        assert page.evaluate("document.documentElement.scrollWidth") <= width, view
        if view == "answer":
            answered(page)
            own = "getComputedStyle(document.querySelector('.said')).direction"
            assert page.evaluate(own) == "ltr", "what a base says goes its own way"
            head, tail = (
                page.locator("details.answer[open] .fact").first.locator("button").nth(place).bounding_box()
                for place in (0, 1)
            )
            assert head["y"] < tail["y"] or head["x"] < tail["x"]
        if AXE.is_file():
            assert violations(page) == [], view
    page.context.close()
