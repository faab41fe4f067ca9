-- What some groups may see of a base is a base of its own: `parent` is the whole one, `source` the generation it was made from.
ALTER TABLE clew.base ADD parent int REFERENCES clew.base;
ALTER TABLE clew.generation ADD source int;
