-- What an auditor reads. A sound run leaves the difference at 0 and the other two views empty.

-- Lost updates show here: the ledger says what was taken, the row what is left. A SKU begins at 0 with its first `set`.
create view audit_stock_balance as
select s.sku,
       s.on_hand,
       coalesce(l.ledger_sum, 0)             as ledger_sum,
       s.on_hand - coalesce(l.ledger_sum, 0) as difference
from stock s
left join (select sku, sum(delta)::bigint as ledger_sum from ledger group by sku) l using (sku);

-- Lines of orders whose ledger rows are not exactly: one `order` row that takes the quantity, and for a cancelled order
-- one `cancel` row that gives it back. Ledger rows without a line appear with a null quantity, orders without any line
-- with a null SKU.
create view audit_order_ledger as
with entries as (
    select order_id,
           sku,
           count(*) filter (where kind = 'order')                     as taken_rows,
           coalesce(sum(delta) filter (where kind = 'order'), 0)::bigint  as taken,
           count(*) filter (where kind = 'cancel')                    as returned_rows,
           coalesce(sum(delta) filter (where kind = 'cancel'), 0)::bigint as returned
    from ledger
    where order_id is not null
    group by order_id, sku
), lines as (
    select o.id as order_id, o.status, l.sku, l.quantity
    from orders o
    left join order_lines l on l.order_id = o.id
)
select coalesce(l.order_id, e.order_id) as order_id,
       coalesce(l.sku, e.sku)           as sku,
       l.status,
       l.quantity,
       coalesce(e.taken_rows, 0)        as taken_rows,
       coalesce(e.taken, 0)             as taken,
       coalesce(e.returned_rows, 0)     as returned_rows,
       coalesce(e.returned, 0)          as returned
from lines l
full join entries e on e.order_id = l.order_id and e.sku = l.sku
where l.quantity is null
   or e.taken_rows is distinct from 1
   or e.taken is distinct from -l.quantity
   or e.returned_rows is distinct from (case l.status when 'cancelled' then 1 else 0 end)
   or e.returned is distinct from (case l.status when 'cancelled' then l.quantity else 0 end);

-- Ledger rows whose token is lower than one that wrote the SKU before: a holder that had been overtaken still wrote.
create view audit_token_regressions as
select id, sku, kind, order_id, token, highest_before, instance, at
from (
    select l.*,
           max(token) over (partition by sku order by id rows between unbounded preceding and 1 preceding)
               as highest_before
    from ledger l
    where token is not null
) ordered
where token < highest_before;
