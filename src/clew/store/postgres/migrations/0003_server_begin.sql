-- What servers share: users and what they did, finished runs, bases made on the page with their documents and builds.
CREATE SCHEMA clew_server;
SET LOCAL search_path = clew_server;
CREATE TABLE "user" (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, name text NOT NULL UNIQUE, password text NOT NULL,
    is_initial boolean NOT NULL, is_active boolean NOT NULL DEFAULT true, groups_of text NOT NULL DEFAULT '[]',
    asks_per_day bigint, made double precision NOT NULL, subject text UNIQUE
);
CREATE TABLE role (
    "user" bigint NOT NULL REFERENCES "user" ON DELETE CASCADE, base text NOT NULL,
    role text NOT NULL CHECK (role IN ('reader', 'editor', 'admin')), PRIMARY KEY ("user", base)
);
CREATE TABLE session (
    digest bytea PRIMARY KEY, "user" bigint NOT NULL REFERENCES "user" ON DELETE CASCADE,
    made double precision NOT NULL, seen double precision NOT NULL
);
CREATE TABLE token (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, digest bytea NOT NULL UNIQUE, name text NOT NULL,
    "user" bigint NOT NULL REFERENCES "user" ON DELETE CASCADE, may_write boolean NOT NULL,
    made double precision NOT NULL, seen double precision, ends double precision NOT NULL
);
CREATE TABLE asked (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, "user" bigint NOT NULL REFERENCES "user" ON DELETE CASCADE,
    at double precision NOT NULL, base text NOT NULL, question text, run text
);
CREATE INDEX ON asked ("user", at);
CREATE TABLE audit (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, at double precision NOT NULL, actor text NOT NULL,
    what text NOT NULL, about text NOT NULL, address text NOT NULL
);
CREATE FUNCTION refuse_change() RETURNS trigger LANGUAGE plpgsql AS
    $$ BEGIN RAISE EXCEPTION 'an audit log stays'; END $$;
CREATE TRIGGER audit_stays BEFORE UPDATE OR DELETE OR TRUNCATE ON audit
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
CREATE TABLE login (
    state bytea PRIMARY KEY, nonce text NOT NULL, verifier text NOT NULL, made double precision NOT NULL
);
CREATE TABLE setting (name text PRIMARY KEY, value text NOT NULL);
CREATE UNLOGGED TABLE tried (who bytea NOT NULL, at double precision NOT NULL);
CREATE INDEX ON tried (who);
CREATE TABLE run (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, base text NOT NULL, run text NOT NULL, content bytea NOT NULL,
    UNIQUE (base, run)
);
-- A base that was made on the page is its own job: `wanted` says that it is to be built (again), `worker` who does it,
-- `seen` when that server was last alive by the clock of this database, `tries` how often a server died of it.
CREATE TABLE made (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, name text NOT NULL, about text NOT NULL, deleted double precision, built text NOT NULL DEFAULT '{}',
    wanted boolean NOT NULL DEFAULT false, worker text, seen timestamptz, tries int NOT NULL DEFAULT 0,
    state text NOT NULL DEFAULT '{"state": "idle"}'
);
CREATE UNIQUE INDEX ON made (name) WHERE deleted IS NULL;
CREATE TABLE document (
    base bigint NOT NULL REFERENCES made ON DELETE CASCADE, name text NOT NULL, digest text NOT NULL, bytes bigint NOT NULL,
    content bytea NOT NULL, deleted double precision, PRIMARY KEY (base, name)
);
ALTER TABLE document ALTER content SET STORAGE EXTERNAL;
