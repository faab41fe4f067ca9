CREATE SCHEMA IF NOT EXISTS clew;
CREATE TABLE clew.migration (number int PRIMARY KEY, applied timestamptz NOT NULL DEFAULT now());
CREATE TABLE clew.base (id serial PRIMARY KEY, name text NOT NULL UNIQUE, generation int);
CREATE TABLE clew.generation (
    id serial PRIMARY KEY,
    base int NOT NULL REFERENCES clew.base,
    identity text NOT NULL,
    created timestamptz NOT NULL DEFAULT now(),
    facts text NOT NULL
);
ALTER TABLE clew.base ADD FOREIGN KEY (generation) REFERENCES clew.generation;
CREATE TABLE clew.embedder (
    id serial PRIMARY KEY,
    base int NOT NULL REFERENCES clew.base,
    name text NOT NULL,
    dimension int NOT NULL,
    spec text NOT NULL,
    in_use boolean NOT NULL DEFAULT true,
    UNIQUE (base, name)
);
