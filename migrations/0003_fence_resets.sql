-- An operator's reset of a fence, after ZooKeeper's data was lost and tokens start low again. It is a row of the ledger
-- because tokens are judged in the ledger's order: after it they may begin anew. It changes no stock and has no token.

alter table ledger drop constraint ledger_kind_check;
alter table ledger add constraint ledger_kind_check
    check (kind in ('order', 'cancel', 'restock', 'set', 'fence-reset'));
alter table ledger add constraint ledger_fence_reset_check
    check (kind <> 'fence-reset' or (delta = 0 and token is null));

-- Ledger rows whose token is lower than one that wrote the SKU before, since the last reset of its fence: a holder that
-- had been overtaken still wrote.
create or replace view audit_token_regressions as
select id, sku, kind, order_id, token, highest_before, instance, at
from (
    select l.*,
           max(token) over (partition by sku, resets order by id
                            rows between unbounded preceding and 1 preceding) as highest_before
    from (
        select ledger.*, count(*) filter (where kind = 'fence-reset') over (partition by sku order by id) as resets
        from ledger
    ) l
    where token is not null
) ordered
where token < highest_before;
