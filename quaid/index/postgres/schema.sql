-- The derived index of many vaults. Every row has a `vault`, and every key begins with it. A row of a private note has its owner too, `private_to`.
-- Row-level security is a second wall, of these two columns: without the setting `quaid.vault` nothing is seen, and
-- nothing of another vault with it; a second setting, `quaid.owners`, hides the private notes of all others. What asks
-- for a setting is a query of its own, which a statement runs once and not for each row.
-- Numbers of rows are counted per vault. Text is compared by its bytes, as in SQLite; `{server}` is the role of servers.

CREATE SCHEMA quaid;
SET LOCAL search_path = quaid, pg_catalog, {extensions};
GRANT USAGE ON SCHEMA quaid TO {server};

CREATE FUNCTION quaid.search_path() RETURNS text LANGUAGE sql IMMUTABLE
    AS $$ SELECT 'quaid, pg_catalog, {extensions}' $$;
CREATE FUNCTION quaid.vault() RETURNS bigint LANGUAGE sql STABLE PARALLEL SAFE
    AS $$ SELECT nullif(current_setting('quaid.vault', true), '')::bigint $$;
-- Null where nothing is hidden.
CREATE FUNCTION quaid.owners() RETURNS text[] LANGUAGE sql STABLE PARALLEL SAFE
    AS $$ SELECT CASE WHEN current_setting('quaid.owners', true) <> ''
        THEN ARRAY(SELECT json_array_elements_text(current_setting('quaid.owners')::json)) END $$;

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

-- A vault: how often its rows have changed, its last numbers, and how many chunks and stems it has. Servers see the row
-- of their vault.
CREATE TABLE quaid.vaults (
    vault         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name          text COLLATE "C" NOT NULL UNIQUE,
    version       bigint NOT NULL DEFAULT 0,
    last_document integer NOT NULL DEFAULT 0,
    last_chunk    integer NOT NULL DEFAULT 0,
    last_embedder integer NOT NULL DEFAULT 0,
    chunks        integer NOT NULL DEFAULT 0,
    words         bigint NOT NULL DEFAULT 0
);
ALTER TABLE quaid.vaults ENABLE ROW LEVEL SECURITY;
CREATE POLICY of_vault ON quaid.vaults TO {server} USING (vault = (SELECT quaid.vault()));
GRANT SELECT, UPDATE (version, last_document, last_chunk, last_embedder, chunks, words) ON quaid.vaults TO {server};

-- The tables and indexes of ../sqlite/schema.sql, a vault first in each key (server.py). In `chunks`, `stems` are the
-- words and `length` is their number (words.py).
{copied}
CREATE INDEX chunks_stems ON quaid.chunks USING gin (stems) WITH (fastupdate = off);

-- Of any dimension: the question asks the vectors of one embedder, which all have its own.
CREATE TABLE quaid.vectors (
    embedder_id integer NOT NULL,
    chunk_id    integer NOT NULL,
    embedding   {extensions}.vector NOT NULL,
    vault       bigint NOT NULL DEFAULT quaid.vault(),
    private_to  text COLLATE "C",
    PRIMARY KEY (vault, embedder_id, chunk_id)
);

CREATE FUNCTION quaid.delete_rows() RETURNS trigger LANGUAGE plpgsql SET search_path = pg_catalog AS $$
DECLARE
    one text;
BEGIN
    FOREACH one IN ARRAY '{of_a_note}'::text[] LOOP
        EXECUTE format('DELETE FROM quaid.%I r USING gone WHERE r.vault = gone.vault AND r.doc_id = gone.doc_id', one);
    END LOOP;
    RETURN NULL;
END $$;
CREATE TRIGGER delete_rows AFTER DELETE ON quaid.documents REFERENCING OLD TABLE AS gone
    FOR EACH STATEMENT EXECUTE FUNCTION quaid.delete_rows();

DO $$
DECLARE
    one text;
BEGIN
    FOREACH one IN ARRAY '{tables}'::text[] LOOP
        EXECUTE format('ALTER TABLE quaid.%I ENABLE ROW LEVEL SECURITY', one);
        EXECUTE format('CREATE POLICY of_vault ON quaid.%I TO {server} USING (vault = (SELECT quaid.vault()))', one);
        EXECUTE format('GRANT SELECT, INSERT, UPDATE, DELETE ON quaid.%I TO {server}', one);
        IF one NOT IN ('embedders', 'passed_over', 'meta') THEN
            EXECUTE format('CREATE POLICY of_owners ON quaid.%I AS RESTRICTIVE FOR SELECT TO {server} USING '
                '((private_to = ANY ((SELECT quaid.owners())::text[])) IS NOT FALSE)', one);
        END IF;
    END LOOP;
END $$;

-- How often a phrase is in a chunk, by column: where each of its stems follows the one before. One that ends with a star
-- only begins a stem.
CREATE FUNCTION quaid.count_phrase(stems tsvector, phrase text) RETURNS real
    LANGUAGE sql IMMUTABLE SET search_path = pg_catalog
    AS $$
        SELECT coalesce(sum(weight), 0) FROM (
            SELECT min(CASE label WHEN 'A' THEN 0.5 ELSE 1 END) AS weight
            FROM unnest(stems) s JOIN string_to_table(phrase, ' ') WITH ORDINALITY t (term, number)
                ON s.lexeme = term OR right(term, 1) = '*' AND starts_with(s.lexeme, left(term, -1)),
                unnest(s.positions, s.weights) p (place, label)
            GROUP BY place - number HAVING count(DISTINCT number) = cardinality(string_to_array(phrase, ' '))
        ) begun
    $$;

-- The chunks that match each of `queries`: four bytes each of the chunk, its length and the rank, from which follows how
-- often a stem is there; of a phrase how often it is, below zero. `held` counts the hidden ones too, as bm25 does. For
-- row-level security no index would be used, as the operator of text search may tell of rows that it hides: so this
-- function is the owner's, and asks for the vault and the owners itself.
CREATE FUNCTION quaid.match(queries tsquery[], phrases text[])
    RETURNS TABLE (number bigint, total integer, words bigint, held bigint, found bytea)
    LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog
    AS $$
        BEGIN RETURN QUERY
            SELECT q.number, min(v.chunks), min(v.words), count(c.chunk_id), string_agg(
                int4send(c.chunk_id) || int4send(c.length) || float4send(CASE WHEN q.phrase IS NULL
                    THEN ts_rank('{{1,1,1,0.5}}', c.stems, q.query)
                    ELSE -quaid.count_phrase(c.stems, q.phrase) END),
                '' ORDER BY c.chunk_id
            ) FILTER (WHERE (c.private_to = ANY ((SELECT quaid.owners())::text[])) IS NOT FALSE)
            FROM unnest(queries, phrases) WITH ORDINALITY q (query, phrase, number)
            JOIN quaid.vaults v ON v.vault = (SELECT quaid.vault())
            JOIN quaid.chunks c ON c.stems @@ q.query AND c.vault = v.vault
            GROUP BY q.number;
        END
    $$;

-- The stems that some chunks have, from `first` up to `after`, of these numbers of characters.
CREATE FUNCTION quaid.list_stems(first text, after text, shortest integer, longest integer) RETURNS TABLE (stem text)
    LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog
    AS $$
        DECLARE
            prefix text := to_hex(quaid.vault()) || '.';
        BEGIN RETURN QUERY
            SELECT substr(s.word, length(prefix) + 1) COLLATE "C" FROM ts_stat(format(
                'SELECT stems FROM quaid.chunks WHERE vault = %s AND stems @@ %L LIMIT 5000',
                quaid.vault(), quote_literal(prefix || first) || ':*'
            )) s
            WHERE s.word COLLATE "C" >= prefix || first AND s.word COLLATE "C" < prefix || after
                AND length(s.word) - length(prefix) BETWEEN shortest AND longest;
        END
    $$;

-- Servers know a vault by its name; only this function looks among all of them.
CREATE FUNCTION quaid.open_vault(wanted text) RETURNS bigint
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog
    AS $$ BEGIN
        IF NOT EXISTS (SELECT FROM quaid.vaults v WHERE v.name = wanted) THEN
            INSERT INTO quaid.vaults (name) VALUES (wanted) ON CONFLICT (name) DO NOTHING;
        END IF;
        RETURN (SELECT v.vault FROM quaid.vaults v WHERE v.name = wanted);
    END $$;
REVOKE ALL ON ALL FUNCTIONS IN SCHEMA quaid FROM PUBLIC;
GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA quaid TO {server};
