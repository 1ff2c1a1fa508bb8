-- Each order exists once, and no order of the base is missing.
SELECT id, count(*) FROM lake.shop.orders GROUP BY id HAVING count(*) > 1
UNION ALL
SELECT id, 0 FROM base.shop.orders WHERE id NOT IN (SELECT id FROM lake.shop.orders)
