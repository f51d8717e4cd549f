-- Stock, orders and the ledger that explains every change of stock.
-- Times are the database's (one clock for all replicas) unless a comment says otherwise.

create table stock (
    sku        text primary key check (sku ~ '^[A-Za-z0-9._-]{1,64}$'),
    on_hand    bigint not null check (on_hand >= 0),
    -- The highest fencing token that ever claimed this row. The fenced writer begins every transaction with
    -- `update stock set fence = $token where sku = $sku and fence <= $token returning on_hand`: a holder whose lock
    -- went to a later one finds no row. Only the claim writes it; it never goes down.
    fence      bigint not null default 0,
    updated_at timestamptz not null default clock_timestamp()
);

create table orders (
    id           uuid primary key,
    status       text not null check (status in ('accepted', 'cancelled')),
    instance     text not null,               -- the replica that accepted it
    trace_id     text not null,
    created_at   timestamptz not null default clock_timestamp(),
    cancelled_at timestamptz,
    check ((status = 'cancelled') = (cancelled_at is not null))
);

-- No reference to stock(sku): a SKU is never deleted, and the check would lock the hot row a second time.
create table order_lines (
    order_id      uuid not null references orders (id),
    sku           text not null,
    quantity      bigint not null check (quantity > 0),
    on_hand_after bigint not null,            -- as the writer computed it
    primary key (order_id, sku)
);

-- One row per changed SKU, written in the transaction that changes it. Never updated, never deleted.
create table ledger (
    id            bigint generated always as identity primary key,
    change_id     uuid not null,              -- one per transaction; settles a commit that got no reply
    sku           text not null,
    kind          text not null check (kind in ('order', 'cancel', 'restock', 'set')),
    order_id      uuid references orders (id),
    delta         bigint not null,
    on_hand_after bigint not null,            -- as the writer computed it
    token         bigint,                     -- fencing token of the lock; null in mode none
    instance      text not null,
    lock_node     text,                       -- full path of the lock's znode; null in mode none
    acquired_at   timestamptz,                -- when the lock was held, by the replica's clock
    at            timestamptz not null default clock_timestamp(),
    check ((order_id is not null) = (kind in ('order', 'cancel')))
);

-- An order takes from a SKU once and gives back once, whatever the code does.
create unique index ledger_once_per_order on ledger (order_id, sku, kind) where order_id is not null;

-- The first decided reply to a request with an Idempotency-Key. Decided: 2xx, and 409 out-of-stock.
-- Refusals that decide nothing (503 and the like) are not kept, so the same key may be sent again.
create table idempotency (
    key          text primary key,
    request_hash bytea not null,
    status       smallint not null,
    body         json not null,               -- json, not jsonb: it is sent again byte for byte
    order_id     uuid references orders (id),
    created_at   timestamptz not null default clock_timestamp()
);

-- What the fence and the guards kept out. Written outside the refused transaction, best effort: a missing row proves
-- nothing.
create table incidents (
    id       bigint generated always as identity primary key,
    kind     text not null check (kind in ('fenced-out', 'lock-lost')),
    sku      text not null,
    order_id uuid,                            -- of the order that was refused; it has no row in orders
    token    bigint,
    fence    bigint,                          -- what the row held, for fenced-out
    reason   text not null,
    instance text not null,
    at       timestamptz not null default clock_timestamp()
);
