-- The derived index. Everything here can be made again from the files of the vault; nothing else is kept in it.
--
-- Every row belongs to one document and says only what that document's file says. Names, edges, links and
-- citations are kept as written (with a comparison key beside them) and joined when asked, so no row depends on
-- another file and keeping the index up to date is: drop a document's rows, insert its new ones.

-- Facts about the index itself: `generation` is another random word each time the index is built from nothing.
CREATE TABLE meta (
    key   TEXT PRIMARY KEY,
    value TEXT NOT NULL
) WITHOUT ROWID;

-- A note. Size, times and inode are what the file system said just before the file was read; `read_ns` is when
-- that was (a file changed in the same clock tick is read again). They are a hint that spares reading;
-- `content_hash` (SHA-256 of the bytes) decides. `text_hash` is of what a fact says, for exact duplicates.
CREATE TABLE documents (
    doc_id        INTEGER PRIMARY KEY,
    path          TEXT NOT NULL UNIQUE,
    content_hash  TEXT NOT NULL,
    size          INTEGER NOT NULL,
    mtime_ns      INTEGER NOT NULL,
    ctime_ns      INTEGER NOT NULL,
    inode         INTEGER NOT NULL,
    read_ns       INTEGER NOT NULL,
    id            TEXT NOT NULL,
    kind          TEXT NOT NULL,
    type          TEXT,
    title         TEXT NOT NULL,
    text_hash     TEXT,
    status        TEXT,
    owner         TEXT NOT NULL,
    privacy       TEXT NOT NULL,
    confidence    REAL,
    durability    TEXT,
    speaker       TEXT,
    source        TEXT,
    session       TEXT,
    project       TEXT,
    technical     INTEGER NOT NULL,
    pinned        INTEGER NOT NULL,
    verified      INTEGER NOT NULL,
    confirmations INTEGER NOT NULL,
    created       TEXT,
    valid_from    TEXT,
    valid_until   TEXT,
    superseded_by TEXT,
    problems      TEXT NOT NULL  -- a JSON list of sentences
);
CREATE INDEX documents_id ON documents (id);
CREATE INDEX documents_owner ON documents (owner, privacy);
CREATE INDEX documents_text_hash ON documents (text_hash) WHERE text_hash IS NOT NULL;
CREATE INDEX documents_session ON documents (session) WHERE session IS NOT NULL;
CREATE INDEX documents_entities ON documents (kind) WHERE kind = 'entity';
CREATE INDEX documents_notes ON documents (kind) WHERE kind = 'note';
CREATE INDEX documents_counted ON documents (project, kind, status, superseded_by);
CREATE INDEX documents_problems ON documents (path, problems) WHERE problems <> '[]';
CREATE INDEX documents_preferences ON documents (pinned, verified, confirmations, datetime(created)) WHERE type = 'preference';
CREATE INDEX documents_superseded ON documents (superseded_by) WHERE superseded_by IS NOT NULL;

-- A searchable piece of a document: a fact, a turn, a section. `text` is shown; `context` (date and speaker,
-- headings) and `keywords` are searched with it. `embedded` says how far its vector is: pending, ready or failed.
-- `passage` is the passage that a chunk finds, null where there are none. `days` has the windows of days that the text
-- names, and `instructs` is 1 for a standing instruction. `text_key` is the SHA-256 of what is embedded, the key of the
-- embedding cache. A chunk_id is never used twice, so whoever holds vectors in memory can tell old from new by it.
CREATE TABLE chunks (
    chunk_id  INTEGER PRIMARY KEY AUTOINCREMENT,
    doc_id    INTEGER NOT NULL REFERENCES documents ON DELETE CASCADE,
    ordinal   INTEGER NOT NULL,
    text      TEXT NOT NULL,
    context   TEXT NOT NULL,
    keywords  TEXT NOT NULL,
    turn      INTEGER,
    speaker   TEXT,
    said_at   TEXT,
    passage   INTEGER,
    days      TEXT NOT NULL,
    instructs INTEGER NOT NULL,
    text_key  TEXT NOT NULL,
    embedded  TEXT NOT NULL DEFAULT 'pending'
);
CREATE INDEX chunks_document ON chunks (doc_id, ordinal);
CREATE INDEX chunks_turn ON chunks (doc_id, turn, speaker) WHERE turn IS NOT NULL;
CREATE INDEX chunks_instructing ON chunks (chunk_id) WHERE instructs = 1;
CREATE INDEX chunks_pending ON chunks (chunk_id) WHERE embedded <> 'ready';
CREATE INDEX chunks_spread ON chunks (text_key, chunk_id) WHERE embedded <> 'ready';

-- A stretch of a doc under one heading, as it is shown: its markdown, and from which line of the file to which. It is found
-- by its chunks, which are plain text, and counts as its best one. In docs.db only: index.db has none.
CREATE TABLE passages (
    doc_id     INTEGER NOT NULL REFERENCES documents ON DELETE CASCADE,
    ordinal    INTEGER NOT NULL,
    heading    TEXT NOT NULL,  -- a JSON list, outermost first
    text       TEXT NOT NULL,
    first_line INTEGER NOT NULL,
    last_line  INTEGER NOT NULL
);
CREATE UNIQUE INDEX passages_document ON passages (doc_id, ordinal);

-- What a document is called: its file name first (position 0), then its aliases and its title. `name_key` is how names
-- are compared.
CREATE TABLE names (
    name_key TEXT NOT NULL,
    doc_id   INTEGER NOT NULL REFERENCES documents ON DELETE CASCADE,
    position INTEGER NOT NULL,
    name     TEXT NOT NULL
);
CREATE INDEX names_key ON names (name_key);
CREATE INDEX names_document ON names (doc_id);

-- The graph: subject -relation-> object, said by a document. An entity needs no note of its own to be in it.
CREATE TABLE edges (
    doc_id      INTEGER NOT NULL REFERENCES documents ON DELETE CASCADE,
    subject_key TEXT NOT NULL,
    relation    TEXT NOT NULL,
    object_key  TEXT NOT NULL,
    subject     TEXT NOT NULL,
    object      TEXT NOT NULL
);
CREATE INDEX edges_document ON edges (doc_id);
CREATE INDEX edges_subject ON edges (subject_key, doc_id);
CREATE INDEX edges_object ON edges (object_key, doc_id);

-- Wikilinks of a document, by the key of their target.
CREATE TABLE links (
    doc_id     INTEGER NOT NULL REFERENCES documents ON DELETE CASCADE,
    target_key TEXT NOT NULL
);
CREATE INDEX links_document ON links (doc_id);
CREATE INDEX links_target ON links (target_key, doc_id);

-- The tags of a document, in its head and in its text, as `name_key` writes them and without `#`.
CREATE TABLE tags (
    doc_id INTEGER NOT NULL REFERENCES documents ON DELETE CASCADE,
    tag    TEXT NOT NULL
);
CREATE INDEX tags_document ON tags (doc_id);
CREATE INDEX tags_tag ON tags (tag, doc_id);

-- The facts that a question in review/ would replace or reject, by the keys of their names, with that of the successor
-- (empty for a rejection) and the reason.
CREATE TABLE pending (
    doc_id        INTEGER NOT NULL REFERENCES documents ON DELETE CASCADE,
    target_key    TEXT NOT NULL,
    successor_key TEXT NOT NULL,
    reason        TEXT NOT NULL
);
CREATE INDEX pending_document ON pending (doc_id);

-- The turns a fact rests on: (note name of the episode, turn).
CREATE TABLE citations (
    doc_id  INTEGER NOT NULL REFERENCES documents ON DELETE CASCADE,
    episode TEXT NOT NULL,
    turn    INTEGER NOT NULL
);
CREATE INDEX citations_document ON citations (doc_id);
CREATE INDEX citations_turn ON citations (episode, turn);

-- Files that look like notes and are not read: links, conflict copies, unreadable folders.
CREATE TABLE passed_over (
    path   TEXT PRIMARY KEY,
    reason TEXT NOT NULL
) WITHOUT ROWID;

-- Words of all chunks, stemmed, rowid = chunk_id. Contentless: the text itself is in `chunks`. Marks belong to the
-- letters they stand on; scripts without spaces are set apart before they are inserted.
CREATE VIRTUAL TABLE fulltext USING fts5 (
    text, context, keywords,
    content = '', contentless_delete = 1,
    tokenize = "porter unicode61 remove_diacritics 2 categories 'L* N* Co M* So'"
);

-- The stems in `fulltext` and where they stand, to find the words somebody may have meant.
CREATE VIRTUAL TABLE vocabulary USING fts5vocab (fulltext, 'row');
CREATE VIRTUAL TABLE occurrences USING fts5vocab (fulltext, 'instance');

-- The models whose vectors are kept, newest last. The vectors of embedder 3 are in the vec0 table `vectors_3`.
-- Recall asks the active one. After a change of model the new one fills up beside it, then takes its place.
CREATE TABLE embedders (
    embedder_id INTEGER PRIMARY KEY,
    fingerprint TEXT NOT NULL UNIQUE,
    dimension   INTEGER NOT NULL,
    settings    TEXT NOT NULL,  -- JSON: enough to open the same embedder again
    active      INTEGER NOT NULL
);
