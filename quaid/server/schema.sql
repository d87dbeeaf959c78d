-- What servers share. Nothing of a note stands here: the record is git.
-- {server} is the role of servers; the owner of the database runs this once, and again with a new version.
CREATE SCHEMA IF NOT EXISTS quaid_server;

CREATE TABLE IF NOT EXISTS quaid_server.vaults (
    vault bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name text COLLATE "C" NOT NULL UNIQUE,
    address text NOT NULL,
    branch text NOT NULL DEFAULT 'main',
    added timestamptz NOT NULL DEFAULT now(),
    head text,                                  -- the commit that the remote was last seen at
    indexed text,                               -- the commit that the index holds
    indexed_at timestamptz,
    config text NOT NULL DEFAULT '',            -- quaid.toml at that commit
    poll_at timestamptz NOT NULL DEFAULT now(), -- when the remote is asked next
    failures int NOT NULL DEFAULT 0,            -- in a row
    problem text NOT NULL DEFAULT ''
);
CREATE INDEX IF NOT EXISTS vaults_poll ON quaid_server.vaults (poll_at);

-- At most one job a vault: to bring its index to what the remote has. `asked` counts the requests: one that comes while
-- the job is being done is not lost.
CREATE TABLE IF NOT EXISTS quaid_server.jobs (
    vault bigint PRIMARY KEY REFERENCES quaid_server.vaults ON DELETE CASCADE,
    reason text NOT NULL,
    asked bigint NOT NULL DEFAULT 1,
    queued_at timestamptz NOT NULL DEFAULT now(),
    due timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX IF NOT EXISTS jobs_due ON quaid_server.jobs (due);

CREATE TABLE IF NOT EXISTS quaid_server.leases (
    vault bigint PRIMARY KEY REFERENCES quaid_server.vaults ON DELETE CASCADE,
    holder text NOT NULL,
    expires timestamptz NOT NULL
);

-- Tokens of machines. `grants` is vault name -> list of scopes.
CREATE TABLE IF NOT EXISTS quaid_server.tokens (
    name text COLLATE "C" PRIMARY KEY,
    hash bytea NOT NULL UNIQUE,
    owner text NOT NULL,
    grants jsonb NOT NULL,
    added timestamptz NOT NULL DEFAULT now(),
    expires timestamptz
);

GRANT USAGE ON SCHEMA quaid_server TO {server};
GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA quaid_server TO {server};
