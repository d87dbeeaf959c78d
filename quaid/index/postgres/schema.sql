-- The derived index of many vaults. The tables are those of ../sqlite/schema.sql, where each is told; what differs:
--
-- Every row has a `vault`, last, filled in by the setting of the transaction, so a statement need not know of vaults.
-- The tables are partitioned by its hash. A transaction names the schema of its vault's partitions in its search path:
-- then a statement is planned for one table of each, whatever there are, and locks no other.
-- Row-level security is a second wall: without the setting nothing is seen, and nothing of another vault with it. A
-- second setting, `quaid.owners`, hides the private notes of all others.
-- Numbers of rows are counted per vault. Text is compared by its bytes, as in SQLite; `{server}` is the role of servers.

CREATE SCHEMA quaid;
SET LOCAL search_path = quaid, pg_catalog, {extensions};
GRANT USAGE ON SCHEMA quaid TO {server};

CREATE FUNCTION quaid.vault() RETURNS bigint LANGUAGE sql STABLE PARALLEL SAFE
    AS $$ SELECT nullif(current_setting('quaid.vault', true), '')::bigint $$;
CREATE FUNCTION quaid.sees_all() RETURNS boolean LANGUAGE sql STABLE PARALLEL SAFE
    AS $$ SELECT coalesce(current_setting('quaid.owners', true), '') = '' $$;
CREATE FUNCTION quaid.is_asking(owner text) RETURNS boolean LANGUAGE sql STABLE PARALLEL SAFE
    AS $$ SELECT nullif(current_setting('quaid.owners', true), '')::jsonb ? owner $$;

-- What the shared statements ask of SQLite.
CREATE FUNCTION quaid.json_each(list text) RETURNS TABLE (value text) LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE ROWS 50
    AS $$ SELECT value COLLATE "C" FROM pg_catalog.json_array_elements_text(list::json) $$;
CREATE FUNCTION quaid.json_item(list text, number integer) RETURNS text LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
    AS $$ SELECT list::json OPERATOR(pg_catalog.->>) number $$;
CREATE OPERATOR quaid.->> (LEFTARG = text, RIGHTARG = integer, FUNCTION = quaid.json_item);
CREATE FUNCTION quaid.json_list(list anycompatiblearray) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE
    AS $$ SELECT pg_catalog.array_to_json(list)::text $$;
CREATE AGGREGATE quaid.json_group_array(anycompatible) (
    SFUNC = array_append, STYPE = anycompatiblearray, INITCOND = '{{}}', FINALFUNC = quaid.json_list
);
CREATE FUNCTION quaid.instr(text, text) RETURNS integer LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
    AS $$ SELECT pg_catalog.strpos($1, $2) $$;
CREATE FUNCTION quaid.lower(text) RETURNS text LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
    AS $$ SELECT pg_catalog.lower($1 COLLATE "C") $$;
CREATE FUNCTION quaid.strftime(form text, seconds bigint, unit text) RETURNS text LANGUAGE sql IMMUTABLE STRICT
    AS $$ SELECT to_char(to_timestamp(seconds) AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"') $$;
CREATE FUNCTION quaid.datetime(iso text) RETURNS text LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
    AS $$ SELECT to_char((CASE WHEN iso ~ 'T.*(Z|[+-]\d\d:?\d*)$' THEN iso ELSE iso || ' Z' END)::timestamptz
        AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI:SS') $$;

-- A vault: whose partitions are its own, up to which commit its rows say what the repository says, and how often they
-- have changed. Servers see the row of their vault.
CREATE TABLE quaid.vaults (
    vault         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name          text COLLATE "C" NOT NULL UNIQUE,
    shard         smallint NOT NULL,
    version       bigint NOT NULL DEFAULT 0,
    last_document integer NOT NULL DEFAULT 0,
    last_chunk    integer NOT NULL DEFAULT 0,
    last_embedder integer NOT NULL DEFAULT 0
);
ALTER TABLE quaid.vaults ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY of_owner ON quaid.vaults TO CURRENT_USER USING (true);
CREATE POLICY of_vault ON quaid.vaults TO {server} USING (vault = quaid.vault());
GRANT SELECT, UPDATE (version, last_document, last_chunk, last_embedder) ON quaid.vaults TO {server};

CREATE TABLE quaid.meta (
    key   text COLLATE "C" NOT NULL,
    value text COLLATE "C" NOT NULL,
    vault bigint NOT NULL DEFAULT quaid.vault(),
    PRIMARY KEY (vault, key)
) PARTITION BY HASH (vault);

CREATE TABLE quaid.documents (
    doc_id        integer NOT NULL,
    path          text COLLATE "C" NOT NULL,
    content_hash  text COLLATE "C" NOT NULL,
    size          bigint NOT NULL,
    mtime_ns      bigint NOT NULL,
    ctime_ns      bigint NOT NULL,
    inode         bigint NOT NULL,
    read_ns       bigint NOT NULL,
    id            text COLLATE "C" NOT NULL,
    kind          text COLLATE "C" NOT NULL,
    type          text COLLATE "C",
    title         text COLLATE "C" NOT NULL,
    text_hash     text COLLATE "C",
    status        text COLLATE "C",
    owner         text COLLATE "C" NOT NULL,
    privacy       text COLLATE "C" NOT NULL,
    confidence    double precision,
    durability    text COLLATE "C",
    speaker       text COLLATE "C",
    source        text COLLATE "C",
    session       text COLLATE "C",
    project       text COLLATE "C",
    technical     smallint NOT NULL,
    pinned        smallint NOT NULL,
    verified      smallint NOT NULL,
    confirmations integer NOT NULL,
    created       text COLLATE "C",
    valid_from    text COLLATE "C",
    valid_until   text COLLATE "C",
    superseded_by text COLLATE "C",
    problems      text COLLATE "C" NOT NULL,
    vault         bigint NOT NULL DEFAULT quaid.vault(),
    PRIMARY KEY (vault, doc_id),
    UNIQUE (vault, path)
) PARTITION BY HASH (vault);
CREATE INDEX documents_id ON quaid.documents (vault, id);
CREATE INDEX documents_owner ON quaid.documents (vault, owner, privacy);
CREATE INDEX documents_private ON quaid.documents (vault, owner) WHERE privacy = 'private';
CREATE INDEX documents_kind ON quaid.documents (vault, kind);
CREATE INDEX documents_text_hash ON quaid.documents (vault, text_hash) WHERE text_hash IS NOT NULL;
CREATE INDEX documents_session ON quaid.documents (vault, session) WHERE session IS NOT NULL;
CREATE INDEX documents_superseded ON quaid.documents (vault, superseded_by) WHERE superseded_by IS NOT NULL;

CREATE TABLE quaid.chunks (
    chunk_id integer NOT NULL,
    doc_id   integer NOT NULL,
    ordinal  integer NOT NULL,
    text     text COLLATE "C" NOT NULL,
    context  text COLLATE "C" NOT NULL,
    keywords text COLLATE "C" NOT NULL,
    turn     integer,
    speaker  text COLLATE "C",
    said_at  text COLLATE "C",
    passage  integer,
    days     text COLLATE "C" NOT NULL,
    text_key text COLLATE "C" NOT NULL,
    embedded text COLLATE "C" NOT NULL DEFAULT 'pending',
    vault    bigint NOT NULL DEFAULT quaid.vault(),
    PRIMARY KEY (vault, chunk_id)
) PARTITION BY HASH (vault);
CREATE INDEX chunks_document ON quaid.chunks (vault, doc_id, ordinal);
CREATE INDEX chunks_pending ON quaid.chunks (vault, chunk_id) WHERE embedded <> 'ready';
CREATE INDEX chunks_spread ON quaid.chunks (vault, text_key, chunk_id) WHERE embedded <> 'ready';

CREATE TABLE quaid.passages (
    doc_id     integer NOT NULL,
    ordinal    integer NOT NULL,
    heading    text COLLATE "C" NOT NULL,
    text       text COLLATE "C" NOT NULL,
    first_line integer NOT NULL,
    last_line  integer NOT NULL,
    vault      bigint NOT NULL DEFAULT quaid.vault(),
    PRIMARY KEY (vault, doc_id, ordinal)
) PARTITION BY HASH (vault);

CREATE TABLE quaid.names (
    name_key text COLLATE "C" NOT NULL,
    doc_id   integer NOT NULL,
    position integer NOT NULL,
    name     text COLLATE "C" NOT NULL,
    vault    bigint NOT NULL DEFAULT quaid.vault()
) PARTITION BY HASH (vault);
CREATE INDEX names_key ON quaid.names (vault, name_key);

CREATE TABLE quaid.edges (
    doc_id      integer NOT NULL,
    subject_key text COLLATE "C" NOT NULL,
    relation    text COLLATE "C" NOT NULL,
    object_key  text COLLATE "C" NOT NULL,
    subject     text COLLATE "C" NOT NULL,
    object      text COLLATE "C" NOT NULL,
    vault       bigint NOT NULL DEFAULT quaid.vault()
) PARTITION BY HASH (vault);
CREATE INDEX edges_subject ON quaid.edges (vault, subject_key);
CREATE INDEX edges_object ON quaid.edges (vault, object_key);

CREATE TABLE quaid.links (
    doc_id     integer NOT NULL,
    target_key text COLLATE "C" NOT NULL,
    vault      bigint NOT NULL DEFAULT quaid.vault()
) PARTITION BY HASH (vault);
CREATE INDEX links_target ON quaid.links (vault, target_key);

CREATE TABLE quaid.pending (
    doc_id        integer NOT NULL,
    target_key    text COLLATE "C" NOT NULL,
    successor_key text COLLATE "C" NOT NULL,
    reason        text COLLATE "C" NOT NULL,
    vault         bigint NOT NULL DEFAULT quaid.vault()
) PARTITION BY HASH (vault);

CREATE TABLE quaid.citations (
    doc_id  integer NOT NULL,
    episode text COLLATE "C" NOT NULL,
    turn    integer NOT NULL,
    vault   bigint NOT NULL DEFAULT quaid.vault()
) PARTITION BY HASH (vault);
CREATE INDEX citations_turn ON quaid.citations (vault, episode, turn);

CREATE TABLE quaid.passed_over (
    path   text COLLATE "C" NOT NULL,
    reason text COLLATE "C" NOT NULL,
    vault  bigint NOT NULL DEFAULT quaid.vault(),
    PRIMARY KEY (vault, path)
) PARTITION BY HASH (vault);

-- The stems of chunks, as FTS5 would keep them. `weight` is how often one stands in a row, each
-- time by the weight of its column; `places` are its columns and offsets, four bytes each; `length` is the row's number
-- of stems, again in `lengths`, so that ranking joins nothing.
CREATE TABLE quaid.postings (
    term   text COLLATE "C" NOT NULL,
    row_id integer NOT NULL,
    length integer NOT NULL,
    weight real NOT NULL,
    places bytea NOT NULL,
    vault  bigint NOT NULL DEFAULT quaid.vault(),
    PRIMARY KEY (vault, term, row_id)
) PARTITION BY HASH (vault);
CREATE INDEX postings_row ON quaid.postings (vault, row_id);
CREATE TABLE quaid.lengths (
    row_id integer NOT NULL,
    length integer NOT NULL,
    vault  bigint NOT NULL DEFAULT quaid.vault(),
    PRIMARY KEY (vault, row_id)
) PARTITION BY HASH (vault);

CREATE TABLE quaid.embedders (
    embedder_id integer NOT NULL,
    fingerprint text COLLATE "C" NOT NULL,
    dimension   integer NOT NULL,
    settings    text COLLATE "C" NOT NULL,
    active      smallint NOT NULL,
    vault       bigint NOT NULL DEFAULT quaid.vault(),
    PRIMARY KEY (vault, embedder_id),
    UNIQUE (vault, fingerprint)
) PARTITION BY HASH (vault);

-- Of any dimension: the question asks the vectors of one embedder, which all have its own.
CREATE TABLE quaid.vectors (
    embedder_id integer NOT NULL,
    chunk_id    integer NOT NULL,
    embedding   {extensions}.vector NOT NULL,
    vault       bigint NOT NULL DEFAULT quaid.vault(),
    PRIMARY KEY (vault, embedder_id, chunk_id)
) PARTITION BY HASH (vault);

DO $$
DECLARE
    shard text;
    one text;
BEGIN
    FOR number IN 0 .. {shards} - 1 LOOP
        shard := 'quaid_' || number;
        EXECUTE format('CREATE SCHEMA %I', shard);
        EXECUTE format('GRANT USAGE ON SCHEMA %I TO {server}', shard);
        FOREACH one IN ARRAY '{tables}'::text[] LOOP
            EXECUTE format('CREATE TABLE %I.%I PARTITION OF quaid.%I FOR VALUES WITH (MODULUS {shards}, REMAINDER %s)',
                shard, one, one, number);
        END LOOP;
        FOREACH one IN ARRAY '{of_a_note}'::text[] LOOP
            EXECUTE format('ALTER TABLE %I.%I ADD FOREIGN KEY (vault, doc_id) REFERENCES %I.documents ON DELETE CASCADE',
                shard, one, shard);
            IF one NOT IN ('chunks', 'passages') THEN -- which have an index that begins so
                EXECUTE format('CREATE INDEX ON %I.%I (vault, doc_id)', shard, one);
            END IF;
        END LOOP;
    END LOOP;
    FOREACH shard IN ARRAY ARRAY(SELECT 'quaid' UNION ALL SELECT 'quaid_' || n FROM generate_series(0, {shards} - 1) n) LOOP
        -- Asked once for a statement, not for each of its rows. Its language keeps it out of the plan of a statement from
        -- which nothing is hidden.
        EXECUTE format('CREATE FUNCTION %I.hidden() RETURNS SETOF integer LANGUAGE plpgsql STABLE SECURITY DEFINER '
            'SET search_path = pg_catalog ROWS 100 AS $hidden$ BEGIN RETURN QUERY SELECT d.doc_id FROM %I.documents d '
            'WHERE d.vault = quaid.vault() AND d.privacy = ''private'' AND NOT quaid.is_asking(d.owner); END $hidden$',
            shard, shard);
        FOREACH one IN ARRAY '{tables}'::text[] LOOP
            EXECUTE format('ALTER TABLE %I.%I ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY', shard, one);
            EXECUTE format('CREATE POLICY of_vault ON %I.%I USING (vault = quaid.vault()) WITH CHECK (vault = quaid.vault())',
                shard, one);
            EXECUTE format('GRANT SELECT, INSERT, UPDATE, DELETE ON %I.%I TO {server}', shard, one);
            IF one = 'documents' THEN
                EXECUTE format('CREATE POLICY of_owners ON %I.%I AS RESTRICTIVE FOR SELECT TO {server} USING '
                    '(quaid.sees_all() OR privacy <> ''private'' OR quaid.is_asking(owner))', shard, one);
            ELSIF one = ANY ('{of_a_note}'::text[]) THEN
                EXECUTE format('CREATE POLICY of_owners ON %I.%I AS RESTRICTIVE FOR SELECT TO {server} USING '
                    '(quaid.sees_all() OR doc_id NOT IN (SELECT number FROM %I.hidden() number))', shard, one, shard);
            END IF;
        END LOOP;
    END LOOP;
END $$;

-- Servers know a vault by its name; only these two functions look among all of them.
CREATE FUNCTION quaid.find_vault(wanted text) RETURNS TABLE (vault bigint, shard smallint)
    LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog
    AS $$ SELECT v.vault, v.shard FROM quaid.vaults v WHERE v.name = wanted $$;
CREATE FUNCTION quaid.add_vault(wanted text) RETURNS void
    LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog
    AS $$
        WITH new AS (SELECT nextval('quaid.vaults_vault_seq') AS vault)
        INSERT INTO quaid.vaults (vault, name, shard) OVERRIDING SYSTEM VALUE
        SELECT new.vault, wanted, n FROM new, generate_series(0, {shards} - 1) n
        WHERE satisfies_hash_partition('quaid.documents'::regclass, {shards}, n, new.vault)
        ON CONFLICT (name) DO NOTHING
    $$;
REVOKE ALL ON FUNCTION quaid.find_vault(text), quaid.add_vault(text) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION quaid.find_vault(text), quaid.add_vault(text) TO {server};
