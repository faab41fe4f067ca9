ALTER TABLE nodes ADD PRIMARY KEY (id);
CREATE INDEX ON nodes (left(key, 500));
CREATE INDEX ON edges (head, relation, tail);
CREATE INDEX ON edges (tail, relation, head);
ALTER TABLE forms ADD PRIMARY KEY (id);
CREATE INDEX ON forms (left(form, 500));
CREATE INDEX ON words (left(word, 500));
CREATE UNIQUE INDEX ON trigrams (code, length) INCLUDE (count);
CREATE UNIQUE INDEX ON postings (term) INCLUDE (count);
