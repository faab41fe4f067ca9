"""Queries as tokens: whatever the grammar allows is a query, and its tokens say the same query."""

import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import clew
from clew.answering.queries.kinds import check
from clew.answering.queries.parsing import parse
from clew.answering.queries.query_answers import run_query
from clew.answering.reading.plan import LETTERS
from clew.answering.reading.quantities import quantities
from clew.answering.reading.query_tokens import (
    CODES,
    NUMBERS,
    VALUES,
    WORDS,
    Symbols,
    Terms,
    UnsayableError,
    query_of,
    read_query,
    tokens_of,
)
from clew.answering.reading.vocabulary import Vocabulary
from clew.core import query as ql
from clew.core.errors import InputError

FILES = {
    "boats.csv": "name,harbour,length,built,is_steel\nAda,Leith,12.5,1990-04-01,true\nBea,Wick,8,2001-01-05,false\n"
    "Cid,Leith,20,1975-07-07,true\nDot,Oban,,1999-12-31,true\n",
    "races.csv": "name,year\nSpring Cup,2019\nAutumn Cup,2020\nWinter Cup,2021\n",
    "results.csv": "boat,race,place\nAda,Spring Cup,1\nBea,Spring Cup,2\nCid,Autumn Cup,1\nAda,Autumn Cup,3\n"
    "Dot,Winter Cup,1\n",
}


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    folder = tmp_path_factory.mktemp("boats")
    for name, text in FILES.items():
        (folder / name).write_text(text)
    clew.build([folder / name for name in FILES], folder / "boats.kb")
    return clew.open(folder / "boats.kb")


def terms(names=("Ada", "Spring Cup"), types=("boat", "race"), numbers="10 and 2", values=("Leith",)):
    found = [(ql.Named(name, kind), kind) for name, kind in zip(names, types, strict=True)]
    return Terms(found, quantities(numbers), values)


def walk(symbols, known, seed, longest=40):
    """Return a random sequence that the grammar allows, or None if it gets long."""
    rng, tokens = random.Random(seed), []
    reading = read_query(symbols, known)
    allowed = next(reading)
    ends = [CODES[word] for word in ("find", "end", "x0")]
    while len(tokens) < longest:
        places = np.flatnonzero(allowed).tolist()
        assert places, symbols.text(tokens)  # no dead ends
        closing = [place for place in places if place in ends]
        tokens.append(rng.choice(closing if closing and rng.random() < 0.5 else places))
        try:
            allowed = reading.send(tokens[-1])
        except StopIteration as ended:
            return tokens, ended.value
    return None


def literal(known):
    """Return the words for values of queries over these terms."""

    def of(value, _compared):
        if isinstance(value.value, bool):
            return str(value.value).lower()
        if isinstance(value.value, str) and value.value in known.values:
            return VALUES[known.values.index(value.value)]
        for place, one in enumerate(known.numbers):
            if value.value in (one.value, one.text):
                return NUMBERS[place]
        return {0: "zero", 1: "one", 2: "two", 3: "three"}[value.value]

    return of


@settings(max_examples=300, deadline=None)
@given(st.integers(0, 10**9))
def test_the_tokens_of_a_query_say_the_same_query(base, seed):
    kb, known = base.tools.kb, terms()
    symbols = Symbols(Vocabulary(kb.schema))
    found = walk(symbols, known, seed)
    if found is None or found[1] is None:
        return
    query = found[1]
    try:
        check(query, kb.schema)
        before = run_query(kb, base.tools.names, query)
    except InputError:
        return  # it compares what cannot be compared, or joins too much
    letters = {name: letter for (name, _), letter in zip(known.names, LETTERS, strict=False)}
    try:
        tokens = tokens_of(query, symbols, letters, literal(known))
    except UnsayableError:
        return  # names are joined with each other
    again = query_of(tokens, symbols, known)
    assert tokens_of(again, symbols, letters, literal(known)) == tokens
    after = run_query(kb, base.tools.names, again)
    is_same_shape = isinstance(query, ql.Query) and not query.is_grouped and len(query.columns) == len(again.columns)
    if is_same_shape and query.first is None:
        assert set(map(str, before.result.rows)) == set(map(str, after.result.rows)), symbols.text(tokens)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("find count(distinct x) where (x: boat)", "boat find count x0 end"),
        ('find x where (x: boat) and x.harbour = "Leith"', "boat = harbour x0 v1 find x0 end"),
        (
            'find x where (r: result) -[boat]-> (x: boat) and (r) -[race]-> "Spring Cup": race and r.place <= 2',
            "boat boat⁻¹ x0 new race x1 B <= place x1 n2 find x0 end",
        ),
        (
            "find x.harbour where (x: boat) order by x.length desc first 1",
            "boat find harbour x0 desc length x0 first one end",
        ),
        (
            "find x where (x: boat) and not exists {(r: result) -[boat]-> (x)}",
            "boat not exists boat⁻¹ x0 new end find x0 end",
        ),
        (
            "find avg(x.length) where (x: boat) and x in (find x where (x: boat) and x.is_steel = true)",
            "boat = is_steel x0 true find avg length x0 end",
        ),
    ],
)
def test_queries_have_these_tokens(base, text, said):
    symbols, known = Symbols(Vocabulary(base.tools.kb.schema)), terms()
    letters = {name: letter for (name, _), letter in zip(known.names, LETTERS, strict=False)}
    tokens = tokens_of(parse(text), symbols, letters, literal(known))
    assert symbols.text(tokens) == said
    assert query_of(tokens, symbols, known) is not None


def test_a_token_that_may_not_follow_is_refused(base):
    symbols = Symbols(Vocabulary(base.tools.kb.schema))
    with pytest.raises(UnsayableError, match="may not follow"):
        query_of([CODES["find"]], symbols, terms())
    with pytest.raises(UnsayableError, match="does not end"):
        query_of([symbols.types], symbols, terms())


def test_every_word_has_one_code():
    assert len(set(WORDS)) == len(WORDS)
