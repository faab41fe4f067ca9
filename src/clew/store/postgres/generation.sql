-- The tables of one generation. Texts are compared byte by byte, as the embedded base does; long ones are looked up by
-- their first 500 characters, since an index holds no more than a third of a page.
CREATE TABLE nodes (
    id int NOT NULL,
    key text COLLATE "C" NOT NULL,
    type int NOT NULL,
    name text COLLATE "C" NOT NULL,
    aliases text[] NOT NULL,
    text text NOT NULL,
    attributes jsonb NOT NULL
);
CREATE TABLE edges (
    head int NOT NULL,
    relation int NOT NULL,
    tail int NOT NULL,
    nth int NOT NULL DEFAULT 0,  -- among parallel edges
    attributes jsonb
);
-- What is read once a process: the type and the degree of every node, the order of the names by length.
CREATE TABLE arrays (name text PRIMARY KEY, content bytea NOT NULL);
-- Names in their normal form, each with the nodes that bear it, how each was given, and as what kind of name.
CREATE TABLE forms (
    id int NOT NULL,
    form text COLLATE "C" NOT NULL,
    nodes int[] NOT NULL,
    kinds bytea NOT NULL,
    aliases text[] NOT NULL
);
CREATE TABLE words (word text COLLATE "C" NOT NULL, count int NOT NULL, forms int[] NOT NULL);
CREATE TABLE trigrams (code int NOT NULL, length int NOT NULL, count int NOT NULL, ranks int[] NOT NULL);
-- For every term the nodes whose documents have it (int32) and their BM25 weights (float32).
CREATE TABLE postings (term text COLLATE "C" NOT NULL, count int NOT NULL, documents bytea NOT NULL, weights bytea NOT NULL);
-- The vector of every node, where all have one.
CREATE TABLE vector_rows (embedder int NOT NULL, node int NOT NULL, vector bigint NOT NULL, PRIMARY KEY (embedder, node));
ALTER TABLE arrays ALTER content SET STORAGE EXTERNAL;
ALTER TABLE postings ALTER documents SET STORAGE EXTERNAL, ALTER weights SET STORAGE EXTERNAL;
ALTER TABLE words ALTER forms SET STORAGE EXTERNAL;
ALTER TABLE trigrams ALTER ranks SET STORAGE EXTERNAL;
