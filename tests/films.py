"""A small graph of films in Turtle, questions about it, and what is compared of two answers."""

import json

FILMS = """
@prefix ex: <http://ex.org/> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
@prefix skos: <http://www.w3.org/2004/02/skos/core#> .

ex:p57 rdfs:label "directed by"@en, "Regie"@de .
ex:p161 rdfs:label "starring"@en .
ex:p921 rdfs:label "genre"@en .
ex:p279 rdfs:label "subclass of"@en .
ex:casablanca a ex:film ; rdfs:label "Casablanca"@en ; ex:year 1942 ; ex:p57 ex:curtiz ; ex:p161 ex:bogart, ex:bergman ;
    rdfs:comment "A drama about love and exile in wartime Morocco."@en ; ex:p921 ex:romance .
ex:notorious a ex:film ; rdfs:label "Notorious"@en ; ex:year 1946 ; ex:p57 ex:hitchcock ; ex:p161 ex:bergman, ex:grant ;
    rdfs:comment "A spy falls for the woman he sends to her enemies."@en ; ex:p921 ex:spy .
ex:suspicion a ex:film ; rdfs:label "Suspicion"@en ; ex:year 1941 ; ex:p57 ex:hitchcock ; ex:p161 ex:grant ;
    rdfs:comment "A wife fears that her husband plans to kill her."@en ; ex:p921 ex:thriller .
ex:spy a ex:kind ; rdfs:label "spy film"@en ; ex:p279 ex:thriller .
ex:thriller a ex:kind ; rdfs:label "thriller"@en .
ex:romance a ex:kind ; rdfs:label "romance"@en .
ex:curtiz a ex:person ; rdfs:label "Michael Curtiz"@en .
ex:hitchcock a ex:person ; rdfs:label "Alfred Hitchcock"@en ; skos:altLabel "The Master of Suspense"@en .
ex:bogart a ex:person ; rdfs:label "Humphrey Bogart"@en .
ex:bergman a ex:person ; rdfs:label "Ingrid Bergman"@en .
ex:grant a ex:person ; rdfs:label "Cary Grant"@en .
"""
QUESTIONS = (
    "Who directed Casablanca?",
    "Which films starring Cary Grant are directed by Alfred Hitchcock?",
    "Which films starring Ingrid Bergman are not directed by Alfred Hitchcock?",
    "Which films have the genre thriller?",
    "How many films did the Master of Suspense direct?",
    "Which films directed by Alfred Hitchcock are from after 1945?",
    "Which person directed films starring Ingrid Bergmann?",
    "Who starred in a film about exile?",
)


def told(answer):
    """Everything but formal queries, which speak of nodes as each base calls them, and times."""
    shown = {name: value for name, value in answer.to_dict().items() if name not in ("seconds", "trace")}
    formal = ("sparql", "cypher", "sql")
    query = {key: value for key, value in (shown.pop("query", None) or {}).items() if key not in formal}
    return json.loads(json.dumps({**shown, "query": query}, default=str))
