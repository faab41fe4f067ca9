"""Languages: told by scripts and little words, stemmed by their own endings, searched in their own words."""

import pyarrow as pa
import pytest

from clew.store.index.lexical import LexicalIndex, written_in
from clew.store.index.tokens import language, language_of, stem, stem_all, terms

SAID = {
    "en": "Who directed the film that won the prize?",
    "de": "Wer hat bei dem Film Regie geführt, der den Preis gewonnen hat?",
    "es": "¿Quién dirigió la película que ganó el premio?",
    "fr": "Qui a réalisé le film qui a gagné le prix ?",
    "it": "Chi ha diretto il film che ha vinto il premio?",
    "pt": "Quem dirigiu o filme que não ganhou o prêmio?",
    "ja": "賞を取った映画の監督は誰ですか？",
    "ar": "من أخرج الفيلم الذي فاز بالجائزة؟",
    "hi": "पुरस्कार जीतने वाली फिल्म का निर्देशन किसने किया?",
}


@pytest.mark.parametrize(("code", "text"), SAID.items())
def test_a_sentence_tells_its_language(code, text):
    assert language_of(text) == code


def test_names_tell_nothing_about_the_language_of_a_question():
    text = "Chi recita in Some Like It Hot?"
    start = text.index("Some")
    assert language_of(text, [(start, len(text) - 1)]) == "it"


def test_where_nothing_tells_it_is_the_default():
    assert language_of("Inception 2010") == "en"
    assert language_of("Summarise guide_en_la.odt and docs/de/der.html") == "en"
    assert language_of("Inception 2010", default="de") == "de"


def test_a_base_of_names_is_not_of_the_language_that_a_few_of_them_are_of():
    names = ["Fedora 35", "Ubuntu 22.04 LTS", "Red Hat Enterprise Linux 7.8", "Windows XP", "Debian 11 Bullseye"] * 20
    assert written_in(pa.array(names, pa.large_string())) == "en"
    texts = [*names, *["Das Haus steht in der Stadt, in der auch der Fluss ist, und es ist alt."] * 100]
    assert written_in(pa.array(texts, pa.large_string())) == "de"


@pytest.mark.parametrize(
    ("code", "one", "other"),
    [
        ("de", "Dateien", "Datei"),
        ("es", "archivos", "archivo"),
        ("fr", "fichiers", "fichier"),
        ("pt", "opções", "opção"),
        ("it", "salvato", "salva"),
        ("en", "genes", "gene"),
    ],
)
def test_forms_of_a_word_share_a_stem(code, one, other):
    assert terms(one, code) == terms(other, code)


@pytest.mark.parametrize("code", ["en", "de", "es", "fr", "it", "pt"])
def test_a_column_is_stemmed_like_single_words(code):
    words = sorted(
        language(code).stop_words | {"zeitungen", "ficheros", "opciones", "affichee", "servidores", "nazioni"}
    )
    plain = [word for word in words if word.isascii()]
    assert stem_all(pa.array(plain, pa.large_string()), code).to_pylist() == [stem(word, code) for word in plain]


def test_japanese_is_found_by_pairs_of_characters_without_spaces(tmp_path):
    documents = ["ファイルの名前を変更する", "標準出力に書き込む", "時刻を表示する"]
    column = pa.array(documents, pa.large_string())
    assert written_in(column) == "ja"
    LexicalIndex.write(tmp_path, column, "ja")
    index = LexicalIndex.open(tmp_path, "ja")
    assert index.search("名前の変更はどうしますか", 1).nodes.tolist() == [0]


def test_an_index_searches_in_the_words_of_its_language(tmp_path):
    column = pa.array(["Die Dateien liegen auf dem Rechner", "Das Signal wird gesendet"], pa.large_string())
    LexicalIndex.write(tmp_path, column, "de")
    index = LexicalIndex.open(tmp_path, "de")
    assert index.search("Welche Datei?", 2).nodes.tolist() == [0]
    assert not len(index.search("die auf dem", 2).nodes)
